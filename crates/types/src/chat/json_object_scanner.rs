//! Finds the end of a JSON object that arrives in pieces.

/// Where a JSON object ends that comes in pieces.
#[derive(Debug, Clone, Default)]
pub struct JsonObjectScanner {
    /// Bytes read so far.
    read: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// After how many bytes it was closed, or turned out to be no object.
    end: Option<usize>,
}

impl JsonObjectScanner {
    /// Reads on.
    pub fn push(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if self.end.is_some() {
                return;
            }
            self.read += 1;
            self.byte(byte);
        }
    }

    /// True if its end is there, or if it is no object.
    pub fn is_closed(&self) -> bool {
        self.end.is_some()
    }

    /// The text that was read: the object, and what stands after it.
    pub fn split<'t>(&self, text: &'t str) -> (&'t str, &'t str) {
        self.end.and_then(|end| text.split_at_checked(end)).unwrap_or((text, ""))
    }

    fn byte(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'{' | b'[' if self.depth > 0 || byte == b'{' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => self.depth -= 1,
            b'"' if self.depth > 0 => self.in_string = true,
            _ if self.depth > 0 || byte.is_ascii_whitespace() => return,
            _ => {}
        }
        if self.depth == 0 {
            self.end = Some(self.read);
        }
    }
}
