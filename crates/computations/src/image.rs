//! Greyscale images, and PGM files.

use crate::source::Fault;

/// An image of 8-bit pixels, row after row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Pixels of a row.
    pub width: usize,
    /// Pixels.
    pub pixels: Vec<u8>,
}

/// The most pixels that are read.
const MOST: usize = 1 << 30;

struct Reader<'a> {
    rest: &'a [u8],
    line: usize,
    /// Bytes of the line before the rest, and before the last word.
    column: usize,
    word: usize,
}

impl<'a> Reader<'a> {
    fn fault<T>(&self, message: String) -> Result<T, Fault> {
        Err(Fault { line: self.line, column: self.word + 1, message })
    }

    fn skip(&mut self, count: usize) {
        let (gone, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.line += gone.iter().filter(|&&b| b == b'\n').count();
        self.column = match gone.iter().rposition(|&b| b == b'\n') {
            Some(end) => gone.len() - 1 - end,
            None => self.column + gone.len(),
        };
        self.rest = rest;
    }

    /// The next word after white space and comments.
    fn word(&mut self, what: &str) -> Result<&'a [u8], Fault> {
        loop {
            let space = self.rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
            self.skip(space);
            if self.rest.first() != Some(&b'#') {
                break;
            }
            let comment = self.rest.iter().take_while(|&&b| b != b'\n').count();
            self.skip(comment);
        }
        self.word = self.column;
        let length = self.rest.iter().take_while(|b| !b.is_ascii_whitespace()).count();
        if length == 0 {
            return self.fault(format!("the file ends before {what}"));
        }
        let word = &self.rest[..length];
        self.skip(length);
        Ok(word)
    }

    fn number(&mut self, what: &str, most: usize) -> Result<usize, Fault> {
        let word = self.word(what)?;
        let text = String::from_utf8_lossy(word);
        match text.parse() {
            Ok(number) if number <= most => Ok(number),
            Ok(number) => self.fault(format!("{what} is {number}, at most {most} can be read")),
            Err(error) => self.fault(format!("{what} {:?}: {error}", text.chars().take(20).collect::<String>())),
        }
    }
}

/// Reads a PGM file, plain (`P2`) or binary (`P5`). Pixels of 16 bits keep their upper byte; others are spread over 0 to
/// 255 where the file's largest value is less.
///
/// # Errors
/// Another format, a size beyond 2^30 pixels, a largest value of 0 or beyond 65535, missing pixels, a pixel beyond the
/// largest value: with the number of the line.
pub fn parse_pgm(file: &[u8]) -> Result<Image, Fault> {
    let mut reader = Reader { rest: file, line: 1, column: 0, word: 0 };
    let plain = match reader.word("P2 or P5")? {
        b"P2" => true,
        b"P5" => false,
        other => {
            let shown: String = String::from_utf8_lossy(other).chars().take(20).collect();
            return reader.fault(format!("{shown:?} where P2 or P5 should stand"));
        }
    };
    let width = reader.number("the width", MOST)?;
    let height = reader.number("the height", MOST)?;
    let Some(count) = width.checked_mul(height).filter(|&c| c <= MOST) else {
        return reader.fault(format!("{width}x{height} pixels, at most {MOST} can be read"));
    };
    let most = reader.number("the largest value", 65535)?;
    if most == 0 {
        return reader.fault("the largest value is 0".into());
    }
    let scaled = |value: usize| (value * 255 / most) as u8;
    if plain {
        // The size is the file's word: memory grows with what is there.
        let mut pixels = Vec::new();
        for _ in 0..count {
            let value = reader.number("a pixel", most)?;
            pixels.push(scaled(value));
        }
        return Ok(Image { width, pixels });
    }
    let bytes = if most > 255 { 2 } else { 1 };
    reader.skip(1);
    reader.word = reader.column;
    if reader.rest.len() < count * bytes {
        return reader.fault(format!("{} of {} bytes of pixels", reader.rest.len(), count * bytes));
    }
    let value = |pixel: &[u8]| pixel.iter().fold(0, |v, &b| v << 8 | usize::from(b));
    let values = reader.rest[..count * bytes].chunks_exact(bytes).map(value);
    let pixels: Option<Vec<u8>> = values.map(|v| (v <= most).then(|| scaled(v))).collect();
    pixels.map_or_else(|| reader.fault(format!("a pixel beyond {most}")), |pixels| Ok(Image { width, pixels }))
}
