//! The stream as something that is timed on.

use super::driver::{Driver, Event, Graph, Memory};
use super::spin::{self, Spin};
use super::timing::Lane;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_core::program::DeviceError;

/// Puts the work on the stream once.
pub(super) type Enqueue<'a> = dyn FnMut() -> Result<(), DeviceError> + 'a;

/// What timing uses beside the work.
#[derive(Clone, Copy)]
pub(super) struct Tools<'a> {
    /// What is overwritten to empty the caches.
    pub(super) flush: Option<&'a Memory>,
    /// What keeps the device busy until all is on the stream; without it the host's part is timed too.
    pub(super) spin: Option<&'a Spin>,
    /// Until a run must have ended.
    pub(super) limit: Duration,
}

pub(super) struct StreamLane<'a> {
    driver: &'a Arc<Driver>,
    enqueue: &'a mut Enqueue<'a>,
    events: [Event; 2],
    graph: Option<(u32, Graph)>,
    tools: Tools<'a>,
    turn: u8,
    /// How long the device spins before the next run.
    lead: Duration,
}

impl<'a> StreamLane<'a> {
    pub(super) fn new(
        driver: &'a Arc<Driver>,
        enqueue: &'a mut Enqueue<'a>,
        tools: Tools<'a>,
    ) -> Result<Self, DeviceError> {
        let events = [Event::create(driver)?, Event::create(driver)?];
        Ok(Self { driver, enqueue, events, graph: None, tools, turn: 0, lead: spin::FIRST })
    }

    fn finished(&self) -> Result<f64, DeviceError> {
        self.driver.wait(&self.events[1], self.tools.limit)?;
        self.events[0].until(&self.events[1])
    }

    /// Keeps the device busy; when that began.
    fn lead(&self) -> Result<Instant, DeviceError> {
        let began = Instant::now();
        self.tools.spin.map_or(Ok(()), |spin| spin.launch(self.lead))?;
        self.events[0].record()?;
        Ok(began)
    }

    /// Ends what was begun: everything is on the stream.
    fn follow(&mut self, began: Instant) -> Result<f64, DeviceError> {
        self.events[1].record()?;
        self.lead = spin::suited(self.lead, began.elapsed());
        self.finished()
    }
}

impl Lane for StreamLane<'_> {
    fn once(&mut self) -> Result<f64, DeviceError> {
        let began = self.lead()?;
        (self.enqueue)()?;
        self.follow(began)
    }

    fn stretch(&mut self, runs: u32) -> Result<f64, DeviceError> {
        if self.graph.as_ref().is_none_or(|(of, _)| *of != runs) {
            self.graph = None;
            let enqueue = &mut self.enqueue;
            let graph = Graph::record(self.driver, || (0..runs).try_for_each(|_| enqueue()))?;
            // The first launch brings the graph to the device.
            graph.launch()?;
            self.events[1].record()?;
            self.driver.wait(&self.events[1], self.tools.limit)?;
            self.graph = Some((runs, graph));
        }
        let began = self.lead()?;
        let Some((_, graph)) = &self.graph else { return Err(DeviceError::Run("nothing was recorded".into())) };
        graph.launch()?;
        self.follow(began)
    }

    fn evict(&mut self) -> Result<(), DeviceError> {
        let memory = self.tools.flush.ok_or_else(|| DeviceError::Run("there is nothing to overwrite".into()))?;
        self.turn = self.turn.wrapping_add(1);
        memory.set(0..memory.len(), self.turn)
    }
}
