//! What goes over the pipe: a JSON document and binary attachments, with their lengths ahead.

use std::io::{self, Read, Write};

/// Begins every frame, so that anything else on the pipe is noticed at once.
const MAGIC: [u8; 4] = *b"TWf1";

/// Longest JSON document: code of a hundred large kernels.
const MOST_JSON: u64 = 256 << 20;

/// Most attachments.
const MOST_PARTS: u32 = 64;

/// Longest attachment.
const MOST_BYTES: u64 = 1 << 40;

/// Memory that is asked for at once: a length that lies costs no more than this before the pipe ends.
const CHUNK: u64 = 16 << 20;

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The document.
    pub json: Vec<u8>,
    /// Its attachments.
    pub parts: Vec<Vec<u8>>,
}

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other end is gone.
    #[error("the pipe is closed")]
    Closed,
    /// Something else was written to the pipe.
    #[error("not a message: it begins with {0:?}")]
    Garbage(String),
    /// A length beyond its limit.
    #[error("a message with {what} of {found}, at most {most} pass")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its length.
        found: u64,
        /// The limit.
        most: u64,
    },
    /// The pipe failed, or ended within a frame.
    #[error("the pipe: {0}")]
    Io(#[from] io::Error),
}

impl Frame {
    /// Writes the frame and flushes.
    ///
    /// # Errors
    /// The pipe fails.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&MAGIC)?;
        to.write_all(&(self.json.len() as u64).to_le_bytes())?;
        to.write_all(&(self.parts.len() as u32).to_le_bytes())?;
        for part in &self.parts {
            to.write_all(&(part.len() as u64).to_le_bytes())?;
        }
        to.write_all(&self.json)?;
        self.parts.iter().try_for_each(|part| to.write_all(part))?;
        to.flush()
    }

    /// Reads the next frame.
    ///
    /// # Errors
    /// The pipe is closed or fails, or holds something else.
    pub fn read(from: &mut dyn Read) -> Result<Self, FrameError> {
        let mut magic = [0; 4];
        let mut have = 0;
        while have < magic.len() {
            match from.read(&mut magic[have..]) {
                Ok(0) if have == 0 => return Err(FrameError::Closed),
                Ok(0) => break,
                Ok(n) => have += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        if magic != MAGIC {
            return Err(FrameError::Garbage(String::from_utf8_lossy(&magic[..have]).into_owned()));
        }
        let json = bounded("a document", number(from)?, MOST_JSON)?;
        let mut count = [0; 4];
        from.read_exact(&mut count)?;
        let count = bounded("a number of attachments", u32::from_le_bytes(count).into(), MOST_PARTS.into())?;
        let lengths = (0..count).map(|_| bounded("an attachment", number(from)?, MOST_BYTES));
        let lengths = lengths.collect::<Result<Vec<_>, FrameError>>()?;
        let json = bytes(from, json)?;
        let parts = lengths.into_iter().map(|length| bytes(from, length)).collect::<Result<_, _>>()?;
        Ok(Self { json, parts })
    }
}

fn number(from: &mut dyn Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn bounded(what: &'static str, found: u64, most: u64) -> Result<u64, FrameError> {
    if found <= most { Ok(found) } else { Err(FrameError::TooLong { what, found, most }) }
}

fn bytes(from: &mut dyn Read, length: u64) -> Result<Vec<u8>, FrameError> {
    let mut out = Vec::new();
    while (out.len() as u64) < length {
        let begun = out.len();
        let step = CHUNK.min(length - begun as u64) as usize;
        out.resize(begun + step, 0);
        from.read_exact(&mut out[begun..])?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(frame: &Frame) -> Vec<u8> {
        let mut out = Vec::new();
        frame.write(&mut out).unwrap();
        out
    }

    #[test]
    fn garbage_ends_and_lies_are_told_apart() {
        let read = |bytes: &[u8]| Frame::read(&mut &bytes[..]);
        assert!(matches!(read(b""), Err(FrameError::Closed)));
        assert!(matches!(read(b"panicked at"), Err(FrameError::Garbage(text)) if text == "pani"));
        assert!(matches!(read(b"TW"), Err(FrameError::Garbage(_))));
        let mut long = MAGIC.to_vec();
        long.extend(u64::MAX.to_le_bytes());
        assert!(matches!(read(&long), Err(FrameError::TooLong { what: "a document", .. })));
        // An attachment that is said to be huge costs one chunk of memory and fails at the end of the pipe.
        let mut lie = written(&Frame { json: Vec::new(), parts: vec![Vec::new()] });
        lie[16..24].copy_from_slice(&(1u64 << 39).to_le_bytes());
        assert!(matches!(read(&lie), Err(FrameError::Io(_))));
    }

    proptest! {
        #[test]
        fn frames_come_back(json in prop::collection::vec(any::<u8>(), 0..200),
                            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..5),
                            cut in any::<prop::sample::Index>()) {
            let frame = Frame { json, parts };
            let bytes = written(&frame);
            prop_assert_eq!(&Frame::read(&mut &bytes[..]).unwrap(), &frame);
            // Cut anywhere it is an error, never a shorter frame.
            let cut = cut.index(bytes.len());
            prop_assert!(Frame::read(&mut &bytes[..cut]).is_err());
        }
    }
}
