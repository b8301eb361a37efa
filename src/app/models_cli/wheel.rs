//! One file out of a wheel, which is a zip archive: found by the directory at its end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use flate2::read::DeflateDecoder;

/// The directory's end stands in the last so many bytes: a record of 22 and a comment.
const TAIL_MAX: u64 = 22 + 65_535;

/// Longer than the directory of any wheel that is fetched here.
const DIRECTORY_MAX: u64 = 16 << 20;

/// Where a member lies and how it is packed.
struct Member {
    offset: u64,
    packed: u64,
    is_deflated: bool,
}

/// Writes the member of this name to a file, unless it is longer than that.
pub(super) fn extract(wheel: &Path, name: &str, target: &Path, bytes_max: u64) -> io::Result<()> {
    let mut archive = File::open(wheel)?;
    let member = find(&mut archive, name)?.ok_or_else(|| wrong("it has no such file"))?;
    archive.seek(SeekFrom::Start(member.offset))?;
    let mut head = [0; 30];
    archive.read_exact(&mut head)?;
    if number(&head, 0, 4)? != 0x0403_4b50 {
        return Err(wrong("a file in it does not begin where it should"));
    }
    let skipped = number(&head, 26, 2)? + number(&head, 28, 2)?;
    archive.seek(SeekFrom::Current(skipped.cast_signed()))?;
    let packed = archive.take(member.packed);
    let mut out = File::create(target)?;
    let buffered = io::BufReader::with_capacity(1 << 18, packed);
    // A few packed bytes may stand for very many.
    let written = if member.is_deflated {
        io::copy(&mut DeflateDecoder::new(buffered).take(bytes_max + 1), &mut out)?
    } else {
        io::copy(&mut buffered.take(bytes_max + 1), &mut out)?
    };
    if written > bytes_max {
        return Err(wrong("the file in it is longer than the one that was expected"));
    }
    out.flush()
}

fn find(archive: &mut File, name: &str) -> io::Result<Option<Member>> {
    let length = archive.seek(SeekFrom::End(0))?;
    let tail = read_at(archive, length.saturating_sub(TAIL_MAX), length.min(TAIL_MAX))?;
    let end = tail
        .windows(4)
        .rposition(|word| word == b"PK\x05\x06")
        .ok_or_else(|| wrong("it has no directory"))?;
    let (size, from) = (number(&tail, end + 12, 4)?, number(&tail, end + 16, 4)?);
    if size > DIRECTORY_MAX {
        return Err(wrong("its directory is too long"));
    }
    let directory = read_at(archive, from, size)?;
    let mut at = 0;
    while at + 46 <= directory.len() {
        if number(&directory, at, 4)? != 0x0201_4b50 {
            return Err(wrong("its directory is damaged"));
        }
        let lengths = [28, 30, 32].map(|place| number(&directory, at + place, 2));
        let [name_length, extra, comment] = lengths;
        let name_length = usize::try_from(name_length?).unwrap_or(usize::MAX);
        let more = usize::try_from(extra? + comment?).unwrap_or(usize::MAX);
        if directory.get(at + 46..at + 46 + name_length) == Some(name.as_bytes()) {
            let is_deflated = match number(&directory, at + 10, 2)? {
                0 => false,
                8 => true,
                _ => return Err(wrong("the file in it is packed in an unknown way")),
            };
            let (packed, offset) = (number(&directory, at + 20, 4)?, number(&directory, at + 42, 4)?);
            return Ok(Some(Member { offset, packed, is_deflated }));
        }
        at += 46 + name_length + more;
    }
    Ok(None)
}

fn read_at(archive: &mut File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    archive.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    archive.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A whole number of so many bytes, the least first.
fn number(bytes: &[u8], at: usize, length: usize) -> io::Result<u64> {
    let bytes = bytes.get(at..at + length).ok_or_else(|| wrong("it ends too early"))?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the wheel is not usable: {what}"))
}
