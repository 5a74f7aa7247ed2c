//! One child process and its pipes.

use super::frame::{Frame, FrameError};
use super::isolated::WorkerCommand;
use std::io::{self, BufReader, BufWriter, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Of what a child says on standard error, the end that is kept for the report.
const KEPT: usize = 2000;

/// How long a dead child's last words are waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long a killed child is waited for. One that waits within a driver does not end before the driver lets it.
const LAST_BREATH: Duration = Duration::from_secs(2);

/// Between looks at a killed child.
const LOOK: Duration = Duration::from_millis(1);

/// Why a child gave no answer.
#[derive(Debug)]
pub(super) enum Broken {
    /// It ended, or what it wrote is no message.
    Died(String),
    /// It did not answer in time.
    Silent(Duration),
}

/// A running child.
pub(super) struct Process {
    child: Child,
    to: BufWriter<ChildStdin>,
    from: Receiver<Result<Frame, FrameError>>,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    pub(super) fn start(command: &WorkerCommand) -> io::Result<Self> {
        let mut starting = Command::new(&command.program);
        starting
            .args(&command.args)
            .envs(command.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in &command.unset {
            starting.env_remove(name);
        }
        let mut child = starting.spawn()?;
        let missing = || io::Error::other("a pipe of the new process is missing");
        let to = BufWriter::new(child.stdin.take().ok_or_else(missing)?);
        let out = child.stdout.take().ok_or_else(missing)?;
        let err = child.stderr.take().ok_or_else(missing)?;
        let (send, from) = mpsc::channel();
        std::thread::spawn(move || {
            let mut out = BufReader::new(out);
            loop {
                let frame = Frame::read(&mut out);
                let last = frame.is_err();
                if send.send(frame).is_err() || last {
                    return;
                }
            }
        });
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&said);
        std::thread::spawn(move || listen(err, &kept));
        Ok(Self { child, to, from, said })
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask(&mut self, request: &Frame, patience: Duration) -> Result<Frame, Broken> {
        if let Err(error) = request.write(&mut self.to) {
            return Err(Broken::Died(self.obituary(&error.to_string())));
        }
        match self.from.recv_timeout(patience) {
            Ok(Ok(frame)) => Ok(frame),
            // What it wrote is the cause; how it ends now that nobody reads on is not.
            Ok(Err(error @ (FrameError::Garbage(_) | FrameError::TooLong { .. }))) => {
                Err(Broken::Died(format!("the process was ended: {error}")))
            }
            Ok(Err(error)) => Err(Broken::Died(self.obituary(&error.to_string()))),
            Err(RecvTimeoutError::Timeout) => Err(Broken::Silent(patience)),
            Err(RecvTimeoutError::Disconnected) => Err(Broken::Died(self.obituary("it closed its pipe"))),
        }
    }

    /// How it ended, and its last words.
    fn obituary(&mut self, what: &str) -> String {
        std::thread::sleep(LAST_WORDS);
        let how = match self.child.try_wait() {
            Ok(Some(status)) => format!("the process ended ({status})"),
            _ => format!("the process was ended: {what}"),
        };
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&said);
        if said.trim().is_empty() { how } else { format!("{how}; it said: {}", said.trim()) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill, only to collect. One that does not end is left to the system, which
        // collects it when this process ends.
        let _ = self.child.kill();
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < LAST_BREATH {
            std::thread::sleep(LOOK);
        }
    }
}

/// Keeps the end of what a child says, and passes it on to the log.
fn listen(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(n) = from.read(&mut buffer) {
        if n == 0 {
            return;
        }
        tracing::debug!(worker = %String::from_utf8_lossy(&buffer[..n]).trim_end());
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..n]);
        let beyond = kept.len().saturating_sub(KEPT);
        kept.drain(..beyond);
    }
}
