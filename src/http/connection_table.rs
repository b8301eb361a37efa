//! Who is connected. Where there is no place for another connection, the one that has been idle the longest gives up its own: half a
//! head, or nothing, costs its sender nothing, and must not cost others their turn. Busy connections keep theirs.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::linger::LingerPace;

/// Places beside all others, for the health of a gateway that is full. Nothing else is served there.
const HEALTH_PLACES: usize = 16;

/// How many there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits<'s> {
    /// Of all.
    pub(super) all: usize,
    /// Of one address, unless it is a proxy.
    pub(super) address: usize,
    /// Who connects for others.
    pub(super) proxies: &'s [IpNet],
}

/// The connections of one listener. Its lock is held for moments.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    began: Instant,
    open: Mutex<OpenConnections>,
    linger_pace: LingerPace,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    connections: HashMap<u64, Arc<ConnectionState>>,
    /// How many have a place, and how many of these one for health. One that is told to go has none any more.
    places: usize,
    health: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// What is known of one connection.
#[derive(Debug)]
struct ConnectionState {
    address: IpAddr,
    is_for_health: bool,
    /// How many things it has to do.
    tasks: AtomicUsize,
    /// When it last had nothing to do any more, in milliseconds after `began`.
    idle_since: AtomicU64,
    evicted: Notify,
}

/// The place of one connection. Dropping it frees it.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    table: Arc<ConnectionTable>,
    number: u64,
    state: Arc<ConnectionState>,
    crowding: Option<Crowding>,
}

/// Held while a connection has something to do; over HTTP/2 it may have several things to do at once.
#[derive(Debug)]
pub(super) struct BusyConnection {
    table: Arc<ConnectionTable>,
    state: Arc<ConnectionState>,
}

/// Why a connection is not taken, or only for health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crowding {
    /// There are too many of its address, all of them busy.
    Address,
    /// There are too many in all, all of them busy.
    Full,
}

impl Crowding {
    /// The word for it in metrics.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Crowding::Address => "address",
            Crowding::Full => "full",
        }
    }
}

impl ConnectionTable {
    pub(super) fn new() -> Arc<ConnectionTable> {
        Arc::new(ConnectionTable {
            began: Instant::now(),
            open: Mutex::default(),
            linger_pace: LingerPace::new(),
        })
    }

    /// A place for a connection from this address, if need be that of another which is told to go; how many were. Where all that
    /// could go are busy, it is a place for health alone.
    ///
    /// # Errors
    /// When there is none of these either.
    pub(super) fn enter(
        self: &Arc<ConnectionTable>,
        address: IpAddr,
        limits: ConnectionLimits<'_>,
    ) -> Result<(ConnectionPlace, usize), Crowding> {
        let network = network(address);
        let is_proxy = is_within(limits.proxies, address);
        let mut open = self.lock();
        let (evicted, crowding) = match open.make_room(network, is_proxy, limits) {
            Ok(evicted) => (evicted, None),
            Err(why) => (open.make_room_for_health(why)?, Some(why)),
        };
        let is_for_health = crowding.is_some();
        let state = Arc::new(ConnectionState {
            address: network,
            is_for_health,
            tasks: AtomicUsize::new(0),
            idle_since: AtomicU64::new(self.moment()),
            evicted: Notify::new(),
        });
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, state.clone());
        open.count(&state);
        Ok((ConnectionPlace { table: self.clone(), number, state, crowding }, evicted))
    }

    /// Tells those to go that have been idle the longest; how many there were, at most as many as said.
    pub(super) fn evict_idle(&self, most: usize) -> usize {
        let mut open = self.lock();
        (0..most).take_while(|_| open.evict(|_| true).is_some()).count()
    }

    fn moment(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        // No change of it stops halfway.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    /// Makes room for a connection of this address; how many had to go.
    fn make_room(
        &mut self,
        network: IpAddr,
        is_proxy: bool,
        limits: ConnectionLimits<'_>,
    ) -> Result<usize, Crowding> {
        let mut evicted = 0;
        if !is_proxy && self.by_address.get(&network).is_some_and(|count| *count >= limits.address) {
            self.evict(|state| state.address == network && !state.is_for_health).ok_or(Crowding::Address)?;
            evicted += 1;
        }
        if self.places - self.health >= limits.all {
            self.evict(|state| !state.is_for_health).ok_or(Crowding::Full)?;
            evicted += 1;
        }
        Ok(evicted)
    }

    /// Makes room for one that has no other place for this reason.
    fn make_room_for_health(&mut self, why: Crowding) -> Result<usize, Crowding> {
        if self.health < HEALTH_PLACES {
            return Ok(0);
        }
        self.evict(|state| state.is_for_health).ok_or(why)?;
        Ok(1)
    }

    /// Tells the longest idle of these to go. Its place is free at once.
    fn evict(&mut self, may_go: impl Fn(&ConnectionState) -> bool) -> Option<()> {
        let idle = self.connections.iter().filter(|(_, state)| !state.is_busy() && may_go(state));
        let idle = idle.map(|(number, state)| (state.idle_since.load(Ordering::Acquire), *number));
        let (_, number) = idle.min()?;
        self.leave(number)?.evicted.notify_one();
        Some(())
    }

    fn leave(&mut self, number: u64) -> Option<Arc<ConnectionState>> {
        let state = self.connections.remove(&number)?;
        self.places -= 1;
        self.health -= usize::from(state.is_for_health);
        if let Some(count) = self.by_address.get_mut(&state.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&state.address);
            }
        }
        Some(state)
    }

    fn count(&mut self, state: &ConnectionState) {
        self.places += 1;
        self.health += usize::from(state.is_for_health);
        *self.by_address.entry(state.address).or_default() += 1;
    }
}

impl ConnectionState {
    fn is_busy(&self) -> bool {
        self.tasks.load(Ordering::Acquire) > 0
    }
}

impl ConnectionPlace {
    /// Why only the monitoring pages are served here; `None` where everything is.
    pub(super) fn crowding(&self) -> Option<Crowding> {
        self.crowding
    }

    /// The pace at which the connections of its listener are read to their ends.
    pub(super) fn linger_pace(&self) -> &LingerPace {
        &self.table.linger_pace
    }

    /// True while it has something to do.
    pub(super) fn is_busy(&self) -> bool {
        self.state.is_busy()
    }

    /// Until it has had nothing to do for so long.
    pub(super) async fn idle_for(&self, most: Duration) {
        loop {
            let idle = self.idle();
            if idle >= most {
                return;
            }
            tokio::time::sleep(most - idle).await;
        }
    }

    /// For how long it has had nothing to do.
    pub(super) fn idle(&self) -> Duration {
        let since = self.state.idle_since.load(Ordering::Acquire);
        let idle = Duration::from_millis(self.table.moment().saturating_sub(since));
        if self.is_busy() { Duration::ZERO } else { idle }
    }

    /// Until another connection is to have the place, or it was told to go.
    pub(super) async fn evicted(&self) {
        self.state.evicted.notified().await;
    }

    /// It came when there was no place for its requests: its caller is to come again by another.
    pub(super) fn tell_to_go(&self) {
        self.state.evicted.notify_one();
    }

    /// It has one thing more to do from now on, until this is dropped.
    pub(super) fn begin(&self) -> BusyConnection {
        self.state.tasks.fetch_add(1, Ordering::AcqRel);
        BusyConnection { table: self.table.clone(), state: self.state.clone() }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.table.lock().leave(self.number);
    }
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        // First the time: who sees that it has nothing to do sees since when.
        self.state.idle_since.store(self.table.moment(), Ordering::Release);
        self.state.tasks.fetch_sub(1, Ordering::AcqRel);
    }
}

/// True if an address is in one of these networks.
pub(super) fn is_within(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// What counts as one address: with IPv6 a whole network is given to each subscriber.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures_util::FutureExt;

    use super::*;

    fn limits(all: usize, address: usize) -> ConnectionLimits<'static> {
        ConnectionLimits { all, address, proxies: &[] }
    }

    fn from(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    fn must_go(place: &ConnectionPlace) -> bool {
        place.evicted().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_goes_and_a_busy_one_stays() {
        let (table, limits) = (ConnectionTable::new(), limits(3, 9));
        let mut places = Vec::new();
        for last in 1..=3 {
            places.push(table.enter(from(last), limits).unwrap().0);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let busy = places[0].begin();
        let fourth = table.enter(from(4), limits).unwrap();
        assert_eq!(places.iter().map(must_go).collect::<Vec<_>>(), [false, true, false]);
        drop((places.remove(1), busy));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let fifth = table.enter(from(5), limits).unwrap();
        assert_eq!((must_go(&places[1]), fourth.1, fifth.1), (true, 1, 1));
        drop((places, fourth, fifth));
        assert!(table.lock().by_address.is_empty() && table.lock().places == 0);
    }

    #[test]
    fn an_address_has_so_many_and_a_proxy_any_number() {
        let (table, limits) = (ConnectionTable::new(), limits(9, 2));
        let busy = || table.enter(from(1), limits).map(|(place, _)| (place.begin(), place));
        let _first = (busy().unwrap(), busy().unwrap());
        let third = busy().unwrap();
        assert_eq!(third.1.crowding(), Some(Crowding::Address), "it may ask how we are");
        assert!(table.enter(from(2), limits).is_ok(), "another address");
        let proxies = ["192.0.2.0/24".parse().unwrap()];
        assert!(table.enter(from(1), ConnectionLimits { proxies: &proxies, ..limits }).is_ok());
    }

    #[test]
    fn a_gateway_that_is_full_has_places_for_its_health() {
        let (table, limits) = (ConnectionTable::new(), limits(2, 99));
        let all: Vec<_> = (0..2 + HEALTH_PLACES).map(|_| table.enter(from(1), limits).unwrap().0).collect();
        // Nobody was busy: each took the place of the one before.
        assert!(all.iter().all(|place| place.crowding().is_none()));
        let busy: Vec<_> = all[HEALTH_PLACES..].iter().map(ConnectionPlace::begin).collect();
        let health: Vec<_> = (0..HEALTH_PLACES).map(|_| table.enter(from(1), limits).unwrap().0).collect();
        assert!(health.iter().all(|place| place.crowding().is_some()));
        let more = table.enter(from(1), limits).unwrap();
        assert!(more.0.crowding().is_some() && more.1 == 1, "one that was idle has gone");
        let _busy_too: Vec<_> =
            health.iter().skip(1).map(ConnectionPlace::begin).chain([more.0.begin()]).collect();
        assert_eq!(table.enter(from(1), limits).map(drop), Err(Crowding::Full), "all are busy");
        drop((busy, all));
        assert_eq!(table.enter(from(1), limits).unwrap().0.crowding(), None);
    }

    #[test]
    fn an_address_is_one_however_it_is_written_and_a_network_where_it_is_long() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    }
}
