//! The child's side.

use super::frame::{Frame, FrameError};
use super::message::{Reply, Request, frame, wire_buffers};
use std::io::{Read, Write};
use std::sync::mpsc;
use tilewright_core::data::Data;
use tilewright_core::device::{Device, no_data};
use tilewright_core::problem::MeasureError;
use tilewright_core::program::DeviceError;

/// Why a child stops serving.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The pipe fails, or the parent writes nonsense.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A message that is none.
    #[error("message: {0}")]
    Message(String),
    /// The device can do nothing more; a new process is needed.
    #[error("the device is lost: {0}")]
    Lost(DeviceError),
}

/// Answers requests until the parent closes the pipe. Where `open` fails, every request is answered with its error.
///
/// Reads on a thread of its own: when the parent goes away the whole process aborts at once, a hanging kernel with it.
///
/// # Errors
/// The pipe fails, or the device is lost; the parent has been told.
pub fn serve(
    input: impl Read + Send + 'static,
    output: &mut dyn Write,
    open: impl FnOnce() -> Result<Box<dyn Device>, DeviceError>,
) -> Result<(), ServeError> {
    let (send, requests) = mpsc::channel();
    let mut input = input;
    std::thread::spawn(move || {
        loop {
            match Frame::read(&mut input) {
                Ok(frame) => {
                    if send.send(Ok(frame)).is_err() {
                        return;
                    }
                }
                // A process that still works on a request when its parent dies would hold the device. What libraries do at an orderly
                // exit may wait for a kernel that never ends.
                Err(FrameError::Closed) => std::process::abort(),
                Err(error) => {
                    // Nothing is left to do if the main thread has ended.
                    let _ = send.send(Err(error));
                    return;
                }
            }
        }
    });
    let mut served = Served { device: open(), latest: None };
    while let Ok(request) = requests.recv() {
        let request = request?;
        let message: Request = serde_json::from_slice(&request.json).map_err(|e| ServeError::Message(e.to_string()))?;
        let (reply, parts) = served.answer(message, &request.parts);
        let lost = match &reply {
            Reply::Error { error, lost: true } => Some(error.clone()),
            _ => None,
        };
        let reply = frame(&reply, parts).map_err(ServeError::Message)?;
        reply.write(output).map_err(FrameError::from)?;
        if let Some(error) = lost {
            // Giving anything back would wait for a kernel that never ends; the process is about to.
            std::mem::forget(served);
            return Err(ServeError::Lost(error));
        }
    }
    Ok(())
}

struct Served {
    device: Result<Box<dyn Device>, DeviceError>,
    /// What was uploaded last.
    latest: Option<Data>,
}

type Answer = (Reply, Vec<Vec<u8>>);

impl Served {
    fn answer(&mut self, request: Request, parts: &[Vec<u8>]) -> Answer {
        match self.reply(request, parts) {
            Ok(answer) => answer,
            Err(MeasureError::Failed(failure)) => (Reply::Failed(failure), Vec::new()),
            // After a fault the context of a device is of no more use.
            Err(MeasureError::Device(error)) => {
                let lost = matches!(error, DeviceError::Fault(_) | DeviceError::Hang { .. } | DeviceError::Run(_));
                (Reply::Error { error, lost }, Vec::new())
            }
        }
    }

    fn reply(&mut self, request: Request, parts: &[Vec<u8>]) -> Result<Answer, MeasureError> {
        let device = self.device.as_mut().map_err(|e| e.clone())?;
        let done = |reply| Ok((reply, Vec::new()));
        match request {
            Request::Hello => done(Reply::Hello {
                spec: (**device.spec()).clone(),
                ahead: device.ahead(),
                environment: device.environment(),
            }),
            Request::Precompile(programs) => {
                device.precompile(&programs);
                done(Reply::Done)
            }
            Request::Abandon => {
                device.abandon();
                done(Reply::Done)
            }
            Request::Upload(data) => {
                let unfit = |message| DeviceError::Argument { name: "data".into(), message };
                self.latest = None;
                device.upload(self.latest.insert(data.data(parts).map_err(unfit)?))?;
                done(Reply::Done)
            }
            Request::UploadAgain => {
                device.upload(self.latest.as_ref().ok_or_else(no_data)?)?;
                done(Reply::Done)
            }
            Request::Run(program) => {
                device.run(&program)?;
                done(Reply::Done)
            }
            Request::Read => {
                let buffers = device.read()?;
                let parts = buffers.iter().map(|b| b.bytes().to_vec()).collect();
                let specs = self.latest.as_ref().map_or(&[][..], Data::specs);
                Ok((Reply::Buffers(wire_buffers(specs)), parts))
            }
            Request::Time(program, policy) => {
                let mut measurement = device.time(&program, &policy)?;
                // JSON has no infinity.
                measurement.relative_error = measurement.relative_error.min(1.0);
                done(Reply::Time(measurement))
            }
        }
    }
}
