//! Redis's protocol (RESP2): commands are arrays of texts, replies are one of five kinds. No more than this crate needs; the
//! client libraries bring dozens of crates for addresses, clusters and scripts.

use crate::error::RepositoryError;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// A reply longer than this is none of ours.
const LARGEST: usize = 1 << 30;

/// A failed question.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplyError {
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server said no.
    #[error("{0}")]
    Server(String),
    /// What came is no reply, or another one than the command has.
    #[error("unexpected reply {0:?}")]
    Unexpected(String),
    /// What the server is.
    #[error(transparent)]
    Fault(#[from] RepositoryError),
}

impl ReplyError {
    /// Whether another attempt may succeed: a connection that was cut, a server that begins.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Io(_) => true,
            Self::Server(message) => {
                ["LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN"].iter().any(|code| message.starts_with(code))
            }
            Self::Unexpected(_) | Self::Fault(_) => false,
        }
    }
}

/// What a server replies.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    /// A text; none where there is no such thing.
    Text(Option<String>),
    /// A number.
    Number(i64),
    /// Several.
    Many(Vec<Reply>),
}

impl Reply {
    /// The text of a reply that is one.
    pub(crate) fn text(self) -> Result<String, ReplyError> {
        match self {
            Self::Text(Some(text)) => Ok(text),
            other => Err(ReplyError::Unexpected(format!("{other:?}"))),
        }
    }

    /// The texts of a reply of several.
    pub(crate) fn texts(self) -> Result<Vec<String>, ReplyError> {
        match self {
            Self::Many(all) => all.into_iter().map(Self::text).collect(),
            other => Err(ReplyError::Unexpected(format!("{other:?}"))),
        }
    }
}

/// A connection on which one question is asked at a time.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects to `host:port`; every answer may take as long as connecting.
    pub(crate) fn open(address: &str, timeout: Duration) -> Result<Self, ReplyError> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(timeout))?;
                    stream.set_write_timeout(Some(timeout))?;
                    return Ok(Self { stream: BufReader::new(stream) });
                }
                Err(error) => last = error,
            }
        }
        Err(last.into())
    }

    /// Sends a command and waits for its reply.
    pub(crate) fn ask(&mut self, command: &[&str]) -> Result<Reply, ReplyError> {
        self.stream.get_mut().write_all(text(command).as_bytes())?;
        reply(&mut self.stream, 0)
    }

    /// Sends two commands at once and waits for both replies; the second one's is given.
    pub(crate) fn ask_both(&mut self, first: &[&str], second: &[&str]) -> Result<Reply, ReplyError> {
        self.stream.get_mut().write_all((text(first) + &text(second)).as_bytes())?;
        // Both are read before either is judged, so that the connection stays in step.
        let (first, second) = (reply(&mut self.stream, 0), reply(&mut self.stream, 0));
        first.and(second)
    }
}

/// A command as it is sent.
fn text(command: &[&str]) -> String {
    let mut text = format!("*{}\r\n", command.len());
    for part in command {
        text.push_str(&format!("${}\r\n{part}\r\n", part.len()));
    }
    text
}

fn reply(from: &mut impl BufRead, depth: u32) -> Result<Reply, ReplyError> {
    let mut line = String::new();
    if from.take(LARGEST as u64).read_line(&mut line)? == 0 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let line = line.trim_end_matches(['\r', '\n']);
    let unexpected = || ReplyError::Unexpected(line.chars().take(80).collect());
    let (kind, rest) = line.split_at_checked(1).ok_or_else(unexpected)?;
    let number = || rest.parse::<i64>().map_err(|_| unexpected());
    let length = |n: i64| usize::try_from(n).ok().filter(|n| *n <= LARGEST).ok_or_else(unexpected);
    match kind {
        "+" => Ok(Reply::Text(Some(rest.to_owned()))),
        "-" => Err(ReplyError::Server(rest.to_owned())),
        ":" => Ok(Reply::Number(number()?)),
        "$" | "*" if number()? == -1 => Ok(Reply::Text(None)),
        "$" => {
            let mut bytes = vec![0; length(number()?)? + 2];
            from.read_exact(&mut bytes)?;
            bytes.truncate(bytes.len() - 2);
            String::from_utf8(bytes).map(|text| Reply::Text(Some(text))).map_err(|_| unexpected())
        }
        "*" if depth < 4 => {
            let count = length(number()?)?;
            (0..count).map(|_| reply(from, depth + 1)).collect::<Result<_, _>>().map(Reply::Many)
        }
        _ => Err(unexpected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Reply, ReplyError> {
        reply(&mut text.as_bytes(), 0)
    }

    #[test]
    fn replies_of_every_kind_are_read() {
        assert_eq!(read("+OK\r\n").unwrap(), Reply::Text(Some("OK".into())));
        assert_eq!(read(":-7\r\n").unwrap(), Reply::Number(-7));
        assert_eq!(read("$4\r\na\r\nb\r\n").unwrap().text().unwrap(), "a\r\nb");
        assert_eq!(read("$-1\r\n").unwrap(), Reply::Text(None));
        assert_eq!(read("*2\r\n$1\r\na\r\n$0\r\n\r\n").unwrap().texts().unwrap(), ["a", ""]);
        assert!(matches!(read("-LOADING wait\r\n"), Err(e) if e.is_transient()));
        assert!(matches!(read("-ERR no\r\n"), Err(ReplyError::Server(m)) if m == "ERR no"));
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for text in ["$5\r\nab", "", "*2\r\n:1\r\n"] {
            assert!(matches!(read(text), Err(ReplyError::Io(_))), "{text:?}");
        }
        for text in ["\r\n", "?\r\n", ":x\r\n", "$-2\r\n", "$99999999999\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"] {
            assert!(matches!(read(text), Err(ReplyError::Unexpected(_))), "{text:?}");
        }
    }
}
