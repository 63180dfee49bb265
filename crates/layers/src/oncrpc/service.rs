//! The program behind the server: what it replies to each call. It does no input and output.

use super::outgoing::Outgoing;
use super::{ECHO, NULL, PROGRAM, TRANSFER, VERSION};
use crate::payload::FILL;
use netdyno_protocol::frame::rpc_message::{
    AcceptStatus, AuthStatus, CALL_HEADER_LEN, Call, CallError, MOST_AUTH_BYTES, RPC_VERSION, Reply,
    ReplyBody, Versions,
};
use netdyno_protocol::frame::xdr::{Reader, UNIT, put_opaque};

/// The program.
pub(super) struct Service {
    /// The most bytes of data in a call and in a reply.
    largest: usize,
    reply: Outgoing,
    /// The reply to the last transfer, which serves again for the next one of that length.
    transfer: Outgoing,
    /// The bytes of data in it.
    transfer_bytes: usize,
}

/// Returns the length of the longest call with `largest` bytes of data, in bytes.
pub(super) fn longest_call(largest: usize) -> usize {
    CALL_HEADER_LEN + 2 * MOST_AUTH_BYTES + 2 * UNIT + largest.next_multiple_of(UNIT)
}

impl Service {
    /// Returns a program for up to `largest` bytes of data.
    pub(super) fn new(largest: usize) -> Self {
        let reply = |bytes| Outgoing::new(|out| put_data(out, 0, bytes));
        Self { largest, reply: reply(&[]), transfer: reply(&[]), transfer_bytes: 0 }
    }

    /// Returns the reply to a message, or `None` if the message is no call.
    #[inline(always)]
    pub(super) fn answer(&mut self, message: &[u8]) -> Option<&Outgoing> {
        let call = match Call::parse(message) {
            Ok(call) => call,
            Err(error) => return self.deny(error),
        };
        let xid = call.xid;
        if !call.credential.is_none() {
            return Some(self.other(xid, ReplyBody::AuthError(AuthStatus::REJECTED_CREDENTIAL)));
        }
        if !call.verifier.is_none() {
            return Some(self.other(xid, ReplyBody::AuthError(AuthStatus::BAD_VERIFIER)));
        }
        if call.program != PROGRAM {
            return Some(self.accept(xid, AcceptStatus::ProgramUnavailable));
        }
        if call.version != VERSION {
            let versions = Versions { low: VERSION, high: VERSION };
            return Some(self.accept(xid, AcceptStatus::ProgramMismatch(versions)));
        }
        Some(match call.procedure {
            NULL if call.arguments.is_empty() => self.accept(xid, AcceptStatus::Success(&[])),
            NULL => self.accept(xid, AcceptStatus::GarbageArguments),
            ECHO => match read_data(Reader::new(call.arguments), self.largest) {
                Some(data) => {
                    self.reply.write(|out| put_data(out, xid, data));
                    &self.reply
                }
                None => self.accept(xid, AcceptStatus::GarbageArguments),
            },
            TRANSFER => match read_transfer(call.arguments, self.largest) {
                Some(bytes) => self.transfer(xid, bytes),
                None => self.accept(xid, AcceptStatus::GarbageArguments),
            },
            _ => self.accept(xid, AcceptStatus::ProcedureUnavailable),
        })
    }

    fn deny(&mut self, error: CallError) -> Option<&Outgoing> {
        let (xid, body) = match error {
            CallError::NotACall => return None,
            CallError::RpcVersion { xid } => {
                (xid, ReplyBody::RpcMismatch(Versions { low: RPC_VERSION, high: RPC_VERSION }))
            }
            CallError::Credential { xid } => (xid, ReplyBody::AuthError(AuthStatus::BAD_CREDENTIAL)),
            CallError::Verifier { xid } => (xid, ReplyBody::AuthError(AuthStatus::BAD_VERIFIER)),
        };
        Some(self.other(xid, body))
    }

    /// Returns the reply that refuses a call whose reply would be longer than the call itself. It is shorter than any
    /// whole call.
    #[cold]
    pub(super) fn refuse_longer(&mut self, call: &[u8]) -> Option<&Outgoing> {
        let xid = Reader::new(call).word().ok()?;
        Some(self.other(xid, ReplyBody::AuthError(AuthStatus::TOO_WEAK)))
    }

    fn accept(&mut self, xid: u32, status: AcceptStatus<'_>) -> &Outgoing {
        self.other(xid, Reply::accepted(xid, status).body)
    }

    fn other(&mut self, xid: u32, body: ReplyBody<'_>) -> &Outgoing {
        self.reply.write(|out| Reply { xid, body }.encode(out));
        &self.reply
    }

    fn transfer(&mut self, xid: u32, bytes: usize) -> &Outgoing {
        if bytes != self.transfer_bytes {
            self.transfer.write(|out| put_data(out, xid, &vec![FILL; bytes]));
            self.transfer_bytes = bytes;
        }
        self.transfer.set_xid(xid);
        &self.transfer
    }
}

/// Appends a successful reply with `data`.
#[inline(always)]
fn put_data(out: &mut Vec<u8>, xid: u32, data: &[u8]) {
    Reply::accepted(xid, AcceptStatus::Success(&[])).encode(out);
    put_opaque(out, data);
}

/// Returns the data in the arguments, if they are opaque data of at most `largest` bytes and nothing else.
#[inline(always)]
fn read_data(mut reader: Reader<'_>, largest: usize) -> Option<&[u8]> {
    let data = reader.opaque(largest).ok()?;
    reader.rest().is_empty().then_some(data)
}

/// Returns the bytes that the result of a transfer must have, if these are the arguments of one.
fn read_transfer(arguments: &[u8], largest: usize) -> Option<usize> {
    let mut reader = Reader::new(arguments);
    let bytes = reader.word().ok()? as usize;
    read_data(reader, largest)?;
    (bytes <= largest).then_some(bytes)
}
