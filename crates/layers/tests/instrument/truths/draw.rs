//! Random model parameters from the regions in which an instrument can be wrong.

use netdyno_protocol::sim::Truth;

/// A region of model parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Parameters of any size. The window is never full.
    Ordinary,
    /// A latency far above the time that the window covers, so that replies arrive in clumps.
    Clumps,
    /// Windows of a few requests, odd and even, near the depth of the pipeline.
    SmallWindows,
    /// A gap around the round trip.
    GapNearRoundTrip,
    /// A gap far above the round trip.
    GapFarAbove,
    /// Empty polls cost up to 2 µs, or up to the latency if that is longer.
    CostlyPolls,
    /// More messages in flight than any burst has.
    Deep,
}

/// All regions but [`Region::Deep`].
pub const SHALLOW: [Region; 6] = [
    Region::Ordinary,
    Region::Clumps,
    Region::SmallWindows,
    Region::GapNearRoundTrip,
    Region::GapFarAbove,
    Region::CostlyPolls,
];

/// Random model parameters before they are spelled, in ns.
pub struct Drawn {
    random: fastrand::Rng,
    o_s: f64,
    o_r: f64,
    g: f64,
    l: f64,
    o_poll: f64,
    capacity: usize,
    window: Option<usize>,
    rest: String,
}

impl Drawn {
    /// Draws the parameters of a seed from one region.
    pub fn from(region: Region, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut drawn = Self {
            o_s: log_uniform(&mut random, 5.0, 20e3),
            o_r: log_uniform(&mut random, 5.0, 20e3),
            g: log_uniform(&mut random, 1.0, 100e3),
            l: log_uniform(&mut random, 1.0, 300e3),
            o_poll: if random.bool() { 0.0 } else { log_uniform(&mut random, 0.1, 50.0) },
            capacity: log_uniform(&mut random, 1.0, 128.0) as usize,
            window: None,
            rest: String::new(),
            random,
        };
        drawn.move_to(region);
        drawn
    }

    fn move_to(&mut self, region: Region) {
        let rtt = self.rtt();
        let random = &mut self.random;
        match region {
            Region::Ordinary => {}
            Region::Clumps => {
                let window = log_uniform(random, 1.0, 300.0) as usize;
                let stage = self.g.max(self.o_s + self.o_r);
                self.l = (window as f64 * stage * log_uniform(random, 1.0, 1e3)).min(5e6);
                self.window = Some(window);
            }
            Region::SmallWindows => {
                let window = random.usize(1..18);
                self.g = rtt / window as f64 * log_uniform(random, 0.3, 3.0);
                self.window = Some(window);
            }
            Region::GapNearRoundTrip => self.g = rtt * log_uniform(random, 0.5, 2.0),
            Region::GapFarAbove => self.g = rtt * log_uniform(random, 2.0, 300.0),
            Region::CostlyPolls => {
                self.o_poll = log_uniform(random, 50.0, self.l.max(2e3));
                let window = log_uniform(random, 2.0, 500.0) as usize;
                self.window = random.bool().then_some(window);
            }
            Region::Deep => {
                (self.o_s, self.o_r) = (log_uniform(random, 5.0, 50.0), log_uniform(random, 5.0, 50.0));
                self.g = log_uniform(random, 1.0, 200.0);
                self.l = log_uniform(random, 300e3, 5e6);
            }
        }
    }

    /// Limits the cost of an empty poll to half of a message's overheads. `contention` polls between all
    /// calls, so that more expensive polls would be part of its figures.
    pub fn with_cheap_polls(mut self) -> Self {
        self.o_poll = self.o_poll.min((self.o_s + self.o_r) / 2.0);
        self
    }

    /// Adds noise of a random shape, with a standard deviation of up to a quarter of every duration.
    pub fn with_noise(mut self) -> Self {
        let noise = log_uniform(&mut self.random, 0.003, 0.25);
        let shape = ["normal", "uniform", "laplace"][self.random.usize(..3)];
        self.rest += &format!(",noise={noise:.4},noise_shape={shape}");
        self
    }

    /// Adds the times per byte of a message.
    pub fn with_bytes(mut self) -> Self {
        let random = &mut self.random;
        self.rest += &format!(",G={:.4}ns/B", log_uniform(random, 0.01, 10.0));
        for name in ["O_s", "O_r"] {
            if random.u8(..4) == 0 {
                self.rest += &format!(",{name}={:.4}ns/B", log_uniform(random, 0.01, 10.0));
            }
        }
        self
    }

    fn rtt(&self) -> f64 {
        2.0 * (self.o_s + self.l + self.o_r)
    }

    /// Returns the spelling that `--truth` takes.
    pub fn spelled(&self) -> String {
        let Self { o_s, o_r, g, l, o_poll, capacity, window, rest, .. } = self;
        let window = window.map(|window| format!(",window={window}")).unwrap_or_default();
        format!(
            "o_s={o_s:.3}ns,o_r={o_r:.3}ns,g={g:.3}ns,L={l:.3}ns,o_poll={o_poll:.3}ns,capacity={capacity}{window}{rest}"
        )
    }

    /// Returns the model parameters.
    pub fn truth(&self) -> Truth {
        self.spelled().parse().unwrap()
    }
}

/// Draws a number from `from` to `to`, of any magnitude with the same probability.
pub fn log_uniform(random: &mut fastrand::Rng, from: f64, to: f64) -> f64 {
    from * (to / from).powf(random.f64())
}
