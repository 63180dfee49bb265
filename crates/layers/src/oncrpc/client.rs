//! The client: calls of one size, whose replies are matched by transaction id.

use super::calls::Calls;
use super::outgoing::Outgoing;
use super::{ECHO, PROGRAM, TRANSFER, VERSION};
use crate::payload::{FILL, wrong_size};
use crate::peer_wait::PeerWait;
use crate::requests::Wire;
use crate::socket::{block_on, block_on_either};
use netdyno_host::random;
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_protocol::frame::rpc_message::{
    AcceptStatus, Auth, AuthStatus, Call, MOST_AUTH_BYTES, REPLY_HEADER_LEN, Reply, ReplyBody, Versions,
};
use netdyno_protocol::frame::xdr::{Reader, UNIT, put_opaque, put_word};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Empty polls between two looks at the clock, as long as calls may have to be sent again.
const POLLS_PER_CLOCK: u32 = 32;

/// A connected socket that carries messages.
pub(super) trait Channel {
    /// Whether the system repeats what the network loses. The client then sends no call twice.
    const IS_RELIABLE: bool;
    /// The most calls without a reply.
    const WINDOW: usize;

    /// Sends a message, or goes on to send it. Returns whether all of it was sent.
    fn send(&mut self, call: &Outgoing) -> Result<bool, LayerError>;

    /// Takes a message, if one has arrived.
    fn take(&mut self) -> Result<Option<&[u8]>, LayerError>;

    /// Returns the most calls without a reply, where calls and replies have up to `message_bytes`.
    fn window(&self, message_bytes: usize) -> usize;

    /// Returns the socket.
    fn socket(&self) -> impl AsFd;

    /// Reports whether a part of a message has been sent or has arrived since the last call.
    fn has_moved(&mut self) -> bool {
        false
    }
}

/// Returns the length of the longest reply with `largest` bytes of data, in bytes.
pub(super) fn longest_reply(largest: usize) -> usize {
    REPLY_HEADER_LEN + MOST_AUTH_BYTES + UNIT + largest.next_multiple_of(UNIT)
}

/// The client's end of a channel.
pub(super) struct Client<C> {
    channel: C,
    wait: Wait,
    calls: Calls,
    call: Outgoing,
    /// The most bytes of data in a call and in a reply.
    largest: usize,
    /// The bytes of data that every reply must have.
    reply_bytes: usize,
    /// Whether the next reply must have the bytes of the call: it is the first of procedure [`ECHO`].
    awaits_echo: bool,
    /// Replies that arrived while this end could not send, and that were not taken.
    ready: usize,
    empty_polls: u32,
    counters: Transport,
}

impl<C: Channel> Client<C> {
    /// Returns a client whose calls have `size_bytes` of data, which the server sends back.
    pub(super) fn new(channel: C, wait: Wait, size_bytes: usize) -> Result<Self, LayerError> {
        // The ids of an earlier client at the same address, whose replies are late, are unlikely to be reused.
        let first = u32::from_ne_bytes(random::bytes().map_err(LayerError::new)?);
        let calls = Calls::new(C::WINDOW, first);
        let counters = Transport { memory_bytes: calls.memory_bytes(), ..Transport::default() };
        Ok(Self {
            channel,
            wait,
            calls,
            call: echo(size_bytes),
            largest: size_bytes,
            reply_bytes: size_bytes,
            awaits_echo: true,
            ready: 0,
            empty_polls: 0,
            counters,
        })
    }

    /// Sets the bytes of data of the next calls and of their replies. No call is without a reply.
    pub(super) fn set_sizes(&mut self, call_bytes: u32, reply_bytes: u32) {
        self.call = transfer(call_bytes, reply_bytes);
        self.reply_bytes = reply_bytes as usize;
        self.awaits_echo = false;
    }

    pub(super) fn largest(&self) -> usize {
        self.largest
    }

    /// Returns the most calls of this size without a reply.
    pub(super) fn window(&self) -> usize {
        let reply = REPLY_HEADER_LEN + UNIT + self.reply_bytes.next_multiple_of(UNIT);
        self.channel.window(self.call.message().len().max(reply)).clamp(1, C::WINDOW)
    }

    pub(super) fn socket(&self) -> impl AsFd {
        self.channel.socket()
    }

    /// Takes messages from the channel. Returns whether one was the reply to a call.
    #[inline(always)]
    fn take_reply(&mut self) -> Result<bool, LayerError> {
        let Some(message) = self.channel.take()? else {
            self.empty_polls += 1;
            if self.empty_polls >= POLLS_PER_CLOCK {
                self.send_overdue()?;
            }
            return Ok(false);
        };
        let Ok(reply) = Reply::parse(message) else {
            self.counters.malformed += 1;
            return Ok(false);
        };
        if !self.calls.close(reply.xid) {
            self.counters.duplicates += 1;
            return Ok(false);
        }
        let data = check(reply.body, self.reply_bytes)?;
        if self.awaits_echo {
            check_echo(data)?;
            self.awaits_echo = false;
        }
        Ok(true)
    }

    /// Sends the calls again that have had no reply for too long. A call that the system refuses now is sent
    /// at its next time.
    fn send_overdue(&mut self) -> Result<(), LayerError> {
        self.empty_polls = 0;
        if C::IS_RELIABLE {
            return Ok(());
        }
        let now = Instant::now();
        while let Some(xid) = self.calls.next_overdue(now) {
            self.call.set_xid(xid);
            if self.channel.send(&self.call)? {
                self.counters.retransmitted += 1;
            } else {
                self.counters.refused += 1;
            }
        }
        Ok(())
    }
}

impl<C: Channel> Wire for Client<C> {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        let full = || LayerError::new("more calls are without a reply than the table has places");
        let xid = self.calls.open().ok_or_else(full)?;
        self.call.set_xid(xid);
        self.counters.sent += 1;
        let mut wait = PeerWait::new(self.wait);
        while !self.channel.send(&self.call)? {
            // The server may be unable to receive before it has sent, so that this end takes replies.
            if self.take_reply()? {
                self.ready += 1;
            } else if self.channel.has_moved() {
                wait = PeerWait::new(self.wait);
            } else {
                wait.after_empty_poll(|timeout| block_on_either(self.channel.socket(), timeout))?;
            }
            self.call.set_xid(xid);
        }
        Ok(())
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        if self.ready > 0 {
            self.ready -= 1;
            return Ok(true);
        }
        self.take_reply()
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.send_overdue()?;
        block_on(self.channel.socket(), timeout)
    }

    fn transport(&self) -> Option<Transport> {
        (!C::IS_RELIABLE).then_some(self.counters)
    }

    fn has_moved(&mut self) -> bool {
        self.channel.has_moved()
    }
}

/// Returns a call of procedure [`ECHO`].
fn echo(bytes: usize) -> Outgoing {
    Outgoing::new(|out| {
        put_header(out, ECHO);
        put_opaque(out, &vec![FILL; bytes]);
    })
}

/// Returns a call of procedure [`TRANSFER`].
fn transfer(call_bytes: u32, reply_bytes: u32) -> Outgoing {
    Outgoing::new(|out| {
        put_header(out, TRANSFER);
        put_word(out, reply_bytes);
        put_opaque(out, &vec![FILL; call_bytes as usize]);
    })
}

fn put_header(out: &mut Vec<u8>, procedure: u32) {
    let call = Call {
        xid: 0,
        program: PROGRAM,
        version: VERSION,
        procedure,
        credential: Auth::NONE,
        verifier: Auth::NONE,
        arguments: &[],
    };
    call.encode(out);
}

/// Checks that a call has succeeded, with `expected` bytes of data, and returns them.
#[inline(always)]
fn check(body: ReplyBody<'_>, expected: usize) -> Result<&[u8], LayerError> {
    let ReplyBody::Accepted { status: AcceptStatus::Success(results), .. } = body else {
        return Err(refused(body));
    };
    let mut reader = Reader::new(results);
    match reader.opaque(results.len()) {
        Ok(data) if data.len() == expected && reader.rest().is_empty() => Ok(data),
        Ok(data) => Err(wrong_size(data.len(), expected)),
        Err(_) => Err(LayerError::new("the server's results are no opaque data")),
    }
}

/// Checks the first reply of procedure [`ECHO`]. A check of each would take time of the measurement.
#[cold]
fn check_echo(data: &[u8]) -> Result<(), LayerError> {
    if data.iter().all(|&byte| byte == FILL) {
        return Ok(());
    }
    Err(LayerError::new("the server's result of ECHO is not the argument: it is no server of this program"))
}

/// Returns the error for a call that the server did not execute.
#[cold]
fn refused(body: ReplyBody<'_>) -> LayerError {
    let has = |what, Versions { low, high }| format!("it has versions {low} to {high} of {what}");
    let why = match body {
        ReplyBody::RpcMismatch(versions) => has("RPC", versions),
        ReplyBody::AuthError(AuthStatus::TOO_WEAK) => {
            "it sends no reply that is longer than the call, as netdyno's server over UDP does beyond its host, because \
             addresses may be forged: measure it by logp, or over oncrpc+tcp"
                .into()
        }
        ReplyBody::AuthError(AuthStatus(status)) => format!("authentication failed with status {status}"),
        ReplyBody::Accepted { status, .. } => match status {
            AcceptStatus::ProgramMismatch(versions) => has("the program", versions),
            AcceptStatus::ProgramUnavailable => "it does not have the program".into(),
            AcceptStatus::ProcedureUnavailable => "it does not have the procedure".into(),
            AcceptStatus::GarbageArguments => "it cannot decode the arguments".into(),
            AcceptStatus::SystemError | AcceptStatus::Success(_) => "it failed".into(),
        },
    };
    LayerError(format!("the server did not execute a call of program {PROGRAM:#x} version {VERSION}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_failed_says_why() {
        let said = |body, expected| check(body, expected).unwrap_err().0;
        let accepted = |status| Reply::accepted(0, status).body;
        let versions = Versions { low: 3, high: 4 };
        assert!(
            said(accepted(AcceptStatus::ProgramMismatch(versions)), 1).ends_with("3 to 4 of the program")
        );
        assert!(said(ReplyBody::RpcMismatch(versions), 1).ends_with("3 to 4 of RPC"));
        assert!(said(ReplyBody::AuthError(AuthStatus::BAD_VERIFIER), 1).ends_with("status 3"));
        let data = accepted(AcceptStatus::Success(b"\0\0\0\x01a\0\0\0"));
        assert_eq!(check(data, 1).unwrap(), b"a");
        assert!(check_echo(&[FILL; 3]).is_ok() && check_echo(&[FILL, 0]).is_err());
        assert!(said(data, 2).contains("a message of 1 bytes came, 2 were expected"));
        assert!(said(accepted(AcceptStatus::Success(b"\0\0\0\x09a")), 1).contains("no opaque data"));
    }
}
