//! The stream as something that is timed on.

use super::driver::{Driver, Event, Graph, Memory};
use super::timing::Lane;
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::program::DeviceError;

/// Puts the work on the stream once.
pub(super) type Enqueue<'a> = dyn FnMut() -> Result<(), DeviceError> + 'a;

pub(super) struct StreamLane<'a> {
    driver: &'a Arc<Driver>,
    enqueue: &'a mut Enqueue<'a>,
    events: [Event; 2],
    graph: Option<(u32, Graph)>,
    /// What is overwritten to empty the caches.
    flush: Option<&'a Memory>,
    turn: u8,
    /// Until a run must have ended.
    limit: Duration,
}

impl<'a> StreamLane<'a> {
    pub(super) fn new(
        driver: &'a Arc<Driver>,
        enqueue: &'a mut Enqueue<'a>,
        flush: Option<&'a Memory>,
        limit: Duration,
    ) -> Result<Self, DeviceError> {
        let events = [Event::create(driver)?, Event::create(driver)?];
        Ok(Self { driver, enqueue, events, graph: None, flush, turn: 0, limit })
    }

    fn finished(&self) -> Result<f64, DeviceError> {
        self.events[1].record()?;
        self.driver.wait(&self.events[1], self.limit)?;
        self.events[0].until(&self.events[1])
    }
}

impl Lane for StreamLane<'_> {
    fn once(&mut self) -> Result<f64, DeviceError> {
        self.events[0].record()?;
        (self.enqueue)()?;
        self.finished()
    }

    fn stretch(&mut self, runs: u32) -> Result<f64, DeviceError> {
        if self.graph.as_ref().is_none_or(|(of, _)| *of != runs) {
            self.graph = None;
            let enqueue = &mut self.enqueue;
            let graph = Graph::record(self.driver, || (0..runs).try_for_each(|_| enqueue()))?;
            // The first launch brings the graph to the device.
            graph.launch()?;
            self.finished()?;
            self.graph = Some((runs, graph));
        }
        let Some((_, graph)) = &self.graph else { return Err(DeviceError::Run("nothing was recorded".into())) };
        self.events[0].record()?;
        graph.launch()?;
        self.finished()
    }

    fn evict(&mut self) -> Result<(), DeviceError> {
        let memory = self.flush.ok_or_else(|| DeviceError::Run("there is nothing to overwrite".into()))?;
        self.turn = self.turn.wrapping_add(1);
        memory.set(0..memory.len(), self.turn)
    }
}
