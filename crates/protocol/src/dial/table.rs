//! The table of the dials, one entry for each. Parsing, options, settings, texts and checks are derived from
//! it.

use core::fmt;

/// Defines the dials from a table of name, symbol, meaning and effect.
macro_rules! dials {
    ($($(#[$doc:meta])* $dial:ident: $name:literal, $symbol:literal, $meaning:literal, $effect:expr;)*) => {
        /// A parameter that can be dialled.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Dial {
            $($(#[$doc])* $dial,)*
        }

        impl Dial {
            /// All dials, in the order of the table.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$dial),*];

            /// Returns the name on the command line and in records. The name of a dial of bytes ends in
            /// `-per-byte`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$dial => $name,)* }
            }

            /// Returns the symbol of the parameter in LogGP.
            pub const fn symbol(self) -> &'static str {
                match self { $(Self::$dial => $symbol,)* }
            }

            /// Returns the meaning of the parameter, in a few words for help texts.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$dial => $meaning,)* }
            }

            /// Returns the effect on a message.
            pub const fn effect(self) -> Effect {
                match self { $(Self::$dial => $effect,)* }
            }
        }
    };
}

dials! {
    /// L: time on the link, during which no processor is busy.
    Latency: "latency", "L", "time on the way", Effect::Latency;
    /// o_s: processor time to send a message.
    SendOverhead: "send-overhead", "o_s", "processor time of a send", Effect::Overhead(LinkEnd::Sender);
    /// o_r: processor time to receive a message.
    RecvOverhead: "recv-overhead", "o_r", "processor time of a receive", Effect::Overhead(LinkEnd::Receiver);
    /// g_s: least time between two messages that a process sends.
    SendGap: "send-gap", "g_s", "least time between sends", Effect::Gap(LinkEnd::Sender);
    /// g_r: least time between two messages that a process receives.
    RecvGap: "recv-gap", "g_r", "least time between receives", Effect::Gap(LinkEnd::Receiver);
    /// G: time for each byte but the first.
    GapPerByte: "gap-per-byte", "G", "time of a byte", Effect::GapPerByte;
}

/// The effect of a dial on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The message takes longer on the way.
    Latency,
    /// The message keeps a processor busy for longer. The time is added to the link's own.
    Overhead(LinkEnd),
    /// The message keeps a distance from the one before it. The distance is enforced as a whole: it includes
    /// the link's own gap.
    Gap(LinkEnd),
    /// The last byte of the message leaves later. The time of a byte is enforced as a whole, as a gap is.
    GapPerByte,
}

/// The end of the link at which a dial has its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// The sender of the message.
    Sender,
    /// The receiver of the message.
    Receiver,
}

impl Dial {
    /// Reports whether the dial is a time for each byte, not for each message.
    pub const fn is_per_byte(self) -> bool {
        matches!(self.effect(), Effect::GapPerByte)
    }

    /// Reports whether the dial is a gap, which is enforced as a whole.
    pub const fn is_gap(self) -> bool {
        matches!(self.effect(), Effect::Gap(_) | Effect::GapPerByte)
    }

    /// Returns the unit of its values in nanoseconds.
    pub const fn unit_ns(self) -> &'static str {
        if self.is_per_byte() { "ns/B" } else { "ns" }
    }
}

impl fmt::Display for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports read the unit of a dial off its name.
    #[test]
    fn the_name_of_a_dial_of_bytes_says_so() {
        for dial in Dial::ALL {
            assert_eq!(dial.name().ends_with("-per-byte"), dial.is_per_byte(), "{dial}");
        }
    }
}
