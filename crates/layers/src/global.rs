//! One-sided operations of split-phase global memory, between two ranks: put, get and fetch-and-add. Each is a request
//! that the target answers, or a bulk transfer. A flush is a sync.

use crate::am::endpoint;
use crate::half::{Half, Replier, Role};
use crate::options::LayerOptions;
use crate::payload::FILL;
use crate::requests::{RealReplier, Responder};
use crate::time::{RealTime, in_real_time};
use netdyno_global::{GlobalPointer, Joining, Segment, World};
use netdyno_measure::layer::{Face, Initiator, LayerError};
use netdyno_measure::logp::data::Transport;
use netdyno_measure::onesided::data::Operation;
use netdyno_measure::task::{OneSided, Subject};
use netdyno_stack::am::Wire as Way;
use std::time::Duration;

/// The ranks of the two processes.
const INITIATOR: u32 = 0;
const TARGET: u32 = 1;
const RANKS: u32 = 2;

/// The operations. A one-way store sends the same messages as a put, and only syncs of all ranks complete it.
const OPERATIONS: [Operation; 3] = [Operation::Put, Operation::Get, Operation::FetchAdd];

/// The least bytes of a segment: the word of a fetch-and-add.
const SEGMENT_AT_LEAST: usize = 8;

/// This process's rank, which is not yet connected.
pub(crate) struct GlobalHalf {
    joining: Joining,
    rank: u32,
    window: usize,
    options: LayerOptions,
}

impl GlobalHalf {
    /// Opens a rank with a port on `way`.
    pub(crate) fn open(way: Way, role: Role, options: LayerOptions) -> Result<Self, LayerError> {
        if options.face != Face::OneSided {
            return Err(LayerError::new("global memory has one-sided operations alone"));
        }
        let rank = if role == Role::Requester { INITIATOR } else { TARGET };
        let window = endpoint::window(way);
        let joining = Joining::open(endpoint::config(&options, window), rank, RANKS, way);
        Ok(Self { joining: joining.map_err(LayerError::new)?, rank, window: window as usize, options })
    }

    /// Joins, and allocates the segment that both ranks have under the same number.
    fn join(self, peer: &[u8]) -> Result<(World, Segment), LayerError> {
        let mine = self.joining.addresses();
        let all = if self.rank == INITIATOR { [mine, peer.to_vec()] } else { [peer.to_vec(), mine] };
        let mut world = self.joining.join(&all).map_err(LayerError::new)?;
        let len = self.options.size_bytes.max(SEGMENT_AT_LEAST);
        let segment = world.allocate(len).map_err(LayerError::new)?;
        world.barrier().map_err(LayerError::new)?;
        Ok((world, segment))
    }
}

impl Half for GlobalHalf {
    fn address(&self) -> Vec<u8> {
        self.joining.addresses()
    }

    fn library(&self) -> Option<&str> {
        self.joining.description()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let (window, largest) = (self.window, self.options.size_bytes);
        let (mut world, segment) = self.join(peer)?;
        let landing = world.allocate(largest.max(SEGMENT_AT_LEAST)).map_err(LayerError::new)?;
        Ok(Box::new(OneSided(GlobalInitiator {
            world,
            time: RealTime::calibrate(),
            data: vec![FILL; largest],
            landing,
            target: GlobalPointer { rank: TARGET, segment: segment.number(), offset: 0 },
            window,
            operation: Operation::Put,
            bytes: 1,
        })))
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let wait = self.options.wait;
        let (world, _) = self.join(peer)?;
        Ok(Box::new(RealReplier::new(GlobalTarget(world), wait)))
    }
}

/// The rank whose memory is reached.
struct GlobalTarget(World);

impl Responder for GlobalTarget {
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        self.0.serve(Duration::ZERO).map_err(LayerError::new)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.0.serve(timeout).map(drop).map_err(LayerError::new)
    }
}

/// The rank that measures.
struct GlobalInitiator {
    world: World,
    time: RealTime,
    /// The bytes that are put.
    data: Vec<u8>,
    /// The memory that gets and fetch-and-adds write to.
    landing: Segment,
    target: GlobalPointer,
    window: usize,
    operation: Operation,
    bytes: usize,
}

in_real_time!(GlobalInitiator);

impl Initiator for GlobalInitiator {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn largest(&self) -> usize {
        self.data.len()
    }

    fn choose(&mut self, operation: Operation, bytes: usize) -> Result<(), LayerError> {
        if !OPERATIONS.contains(&operation) {
            return Err(LayerError::new("global memory has no puts that notify"));
        }
        (self.operation, self.bytes) = (operation, bytes);
        Ok(())
    }

    fn window(&self) -> usize {
        self.window
    }

    #[inline(always)]
    fn start(&mut self) -> Result<(), LayerError> {
        match self.operation {
            Operation::Get => self.world.get(self.target, self.landing, 0, self.bytes),
            Operation::FetchAdd => self.world.get_add(self.target, 1, self.landing, 0),
            _ => self.world.put(self.target, &self.data[..self.bytes]),
        }
        .map_err(LayerError::new)
    }

    /// Waits for the results of gets and of fetch-and-adds. A put has returned once its memory is free.
    #[inline(always)]
    fn wait_local(&mut self) -> Result<(), LayerError> {
        if self.operation == Operation::Put { Ok(()) } else { self.flush() }
    }

    #[inline(always)]
    fn flush(&mut self) -> Result<(), LayerError> {
        self.world.sync().map_err(LayerError::new)
    }

    fn transport(&self) -> Option<Transport> {
        let (peer, strays) = self.world.statistics(TARGET)?;
        Some(crate::transport::counters(peer, strays))
    }
}
