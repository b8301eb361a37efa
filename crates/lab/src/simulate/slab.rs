//! Places for what comes and goes, used again.

/// A list with gaps that are filled first.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    /// No places yet.
    pub(super) fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    /// Puts something somewhere.
    pub(super) fn insert(&mut self, one: T) -> usize {
        if let Some(place) = self.free.pop() {
            self.places[place] = Some(one);
            return place;
        }
        self.places.push(Some(one));
        self.places.len() - 1
    }

    /// Takes what is there.
    pub(super) fn remove(&mut self, place: usize) -> Option<T> {
        let one = self.places.get_mut(place)?.take();
        if one.is_some() {
            self.free.push(place);
        }
        one
    }

    /// What is there.
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.places.get_mut(place)?.as_mut()
    }

    /// How many are there.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
