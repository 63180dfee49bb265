//! The messages of Open Network Computing remote procedure calls, version 2 (ONC RPC, RFC 5531, section 9): a
//! call, and the reply to it.
//!
//! ```text
//! call                                reply that is accepted              reply that is denied
//! 0   transaction id (xid)            0   xid                             0   xid
//! 4   message type     0, a call      4   message type     1, a reply     4   message type     1, a reply
//! 8   RPC version      2              8   reply status     0, accepted    8   reply status     1, denied
//! 12  program                         12  verifier         flavor, body   12  reject status    0 or 1
//! 16  version                         …   accept status    0 to 5         16  0: lowest and highest RPC
//! 20  procedure                       …   0: results, 2: lowest and           version
//! 24  credential       flavor, body       highest version                     1: authentication status
//! …   verifier         flavor, body
//! …   arguments
//! ```
//!
//! All fields are XDR ([`xdr`](super::xdr)): big-endian words, and a body of opaque data of at most
//! [`MOST_AUTH_BYTES`].

use super::xdr::{Malformed, Reader, put_opaque, put_word};
use alloc::vec::Vec;

/// The version of the protocol (RFC 5531, section 8.1).
pub const RPC_VERSION: u32 = 2;
/// The most bytes of the body of a credential or verifier (RFC 5531, section 8.2).
pub const MOST_AUTH_BYTES: usize = 400;
/// The bytes in front of the arguments of a call without authentication.
pub const CALL_HEADER_LEN: usize = 40;
/// The bytes in front of the results of a successful call without authentication.
pub const REPLY_HEADER_LEN: usize = 24;

const AUTH_NONE: u32 = 0;
const CALL: u32 = 0;
const REPLY: u32 = 1;
const ACCEPTED: u32 = 0;
const DENIED: u32 = 1;
const RPC_MISMATCH: u32 = 0;
const AUTH_ERROR: u32 = 1;

/// A credential or a verifier (`opaque_auth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// The flavor of authentication, 0 for `AUTH_NONE`.
    pub flavor: u32,
    /// The body, whose meaning depends on the flavor.
    pub body: &'a [u8],
}

impl Auth<'static> {
    /// No authentication (`AUTH_NONE`).
    pub const NONE: Self = Self { flavor: AUTH_NONE, body: &[] };
}

impl<'a> Auth<'a> {
    /// Reports that the flavor is `AUTH_NONE`. The body is then undefined (RFC 5531, section 10.1).
    pub fn is_none(&self) -> bool {
        self.flavor == AUTH_NONE
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self { flavor: reader.word()?, body: reader.opaque(MOST_AUTH_BYTES)? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_word(out, self.flavor);
        put_opaque(out, self.body);
    }
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The transaction id, which the reply repeats.
    pub xid: u32,
    /// The number of the program.
    pub program: u32,
    /// The version of the program.
    pub version: u32,
    /// The number of the procedure.
    pub procedure: u32,
    /// The identity of the caller.
    pub credential: Auth<'a>,
    /// The proof of the identity.
    pub verifier: Auth<'a>,
    /// The arguments of the procedure.
    pub arguments: &'a [u8],
}

/// The reason why a server cannot decode a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The bytes are no call, or end inside the header. There is nothing to reply to.
    NotACall,
    /// The call is of another version of the protocol.
    RpcVersion {
        /// The transaction id.
        xid: u32,
    },
    /// The credential is malformed.
    Credential {
        /// The transaction id.
        xid: u32,
    },
    /// The verifier is malformed.
    Verifier {
        /// The transaction id.
        xid: u32,
    },
}

impl<'a> Call<'a> {
    /// Decodes a call.
    ///
    /// # Errors
    /// Returns the [`CallError`] of the first field that is not valid.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, CallError> {
        let mut reader = Reader::new(bytes);
        let mut word = || reader.word().map_err(|_| CallError::NotACall);
        let (xid, CALL) = (word()?, word()?) else { return Err(CallError::NotACall) };
        if word()? != RPC_VERSION {
            return Err(CallError::RpcVersion { xid });
        }
        let (program, version, procedure) = (word()?, word()?, word()?);
        let or = |malformed, error| if malformed == Malformed::Cut { CallError::NotACall } else { error };
        let credential =
            Auth::read(&mut reader).map_err(|malformed| or(malformed, CallError::Credential { xid }))?;
        let verifier =
            Auth::read(&mut reader).map_err(|malformed| or(malformed, CallError::Verifier { xid }))?;
        Ok(Self { xid, program, version, procedure, credential, verifier, arguments: reader.rest() })
    }

    /// Appends the encoded call.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for word in [self.xid, CALL, RPC_VERSION, self.program, self.version, self.procedure] {
            put_word(out, word);
        }
        self.credential.put(out);
        self.verifier.put(out);
        out.extend_from_slice(self.arguments);
    }
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The transaction id of the call.
    pub xid: u32,
    /// What the server made of the call.
    pub body: ReplyBody<'a>,
}

/// What a server made of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyBody<'a> {
    /// The call was accepted (`MSG_ACCEPTED`).
    Accepted {
        /// The proof of the server's identity.
        verifier: Auth<'a>,
        /// The outcome.
        status: AcceptStatus<'a>,
    },
    /// The call was denied for its version of the protocol (`RPC_MISMATCH`).
    RpcMismatch(Versions),
    /// The call was denied for its authentication (`AUTH_ERROR`).
    AuthError(AuthStatus),
}

/// The outcome of a call that was accepted (`accept_stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptStatus<'a> {
    /// The procedure was executed, with these results.
    Success(&'a [u8]),
    /// The server does not have the program.
    ProgramUnavailable,
    /// The server has other versions of the program.
    ProgramMismatch(Versions),
    /// The program does not have the procedure.
    ProcedureUnavailable,
    /// The procedure cannot decode the arguments.
    GarbageArguments,
    /// The server failed.
    SystemError,
}

/// The versions that a server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The lowest version.
    pub low: u32,
    /// The highest version.
    pub high: u32,
}

/// The reason why authentication failed (`auth_stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthStatus(pub u32);

impl AuthStatus {
    /// The credential is malformed (`AUTH_BADCRED`).
    pub const BAD_CREDENTIAL: Self = Self(1);
    /// The server does not take the credential (`AUTH_REJECTEDCRED`).
    pub const REJECTED_CREDENTIAL: Self = Self(2);
    /// The verifier is malformed (`AUTH_BADVERF`).
    pub const BAD_VERIFIER: Self = Self(3);
    /// The server does not execute the call for reasons of security (`AUTH_TOOWEAK`).
    pub const TOO_WEAK: Self = Self(5);
}

/// The bytes are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAReply;

impl<'a> Reply<'a> {
    /// Returns the reply of a server without authentication to a call that it accepted.
    pub fn accepted(xid: u32, status: AcceptStatus<'a>) -> Self {
        Self { xid, body: ReplyBody::Accepted { verifier: Auth::NONE, status } }
    }

    /// Decodes a reply.
    ///
    /// # Errors
    /// Returns [`NotAReply`] if a field is not valid, or if bytes follow a reply without results.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, NotAReply> {
        let mut reader = Reader::new(bytes);
        let (xid, REPLY) = (word(&mut reader)?, word(&mut reader)?) else { return Err(NotAReply) };
        let body = match word(&mut reader)? {
            ACCEPTED => {
                let verifier = Auth::read(&mut reader).map_err(|_| NotAReply)?;
                ReplyBody::Accepted { verifier, status: AcceptStatus::read(&mut reader)? }
            }
            DENIED => match word(&mut reader)? {
                RPC_MISMATCH => ReplyBody::RpcMismatch(Versions::read(&mut reader)?),
                AUTH_ERROR => ReplyBody::AuthError(AuthStatus(word(&mut reader)?)),
                _ => return Err(NotAReply),
            },
            _ => return Err(NotAReply),
        };
        if reader.rest().is_empty() { Ok(Self { xid, body }) } else { Err(NotAReply) }
    }

    /// Appends the encoded reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_word(out, self.xid);
        put_word(out, REPLY);
        match self.body {
            ReplyBody::Accepted { verifier, status } => {
                put_word(out, ACCEPTED);
                verifier.put(out);
                status.put(out);
            }
            ReplyBody::RpcMismatch(versions) => {
                put_word(out, DENIED);
                put_word(out, RPC_MISMATCH);
                versions.put(out);
            }
            ReplyBody::AuthError(AuthStatus(status)) => {
                put_word(out, DENIED);
                put_word(out, AUTH_ERROR);
                put_word(out, status);
            }
        }
    }
}

impl<'a> AcceptStatus<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, NotAReply> {
        Ok(match word(reader)? {
            0 => {
                let results = reader.rest();
                *reader = Reader::new(&[]);
                Self::Success(results)
            }
            1 => Self::ProgramUnavailable,
            2 => Self::ProgramMismatch(Versions::read(reader)?),
            3 => Self::ProcedureUnavailable,
            4 => Self::GarbageArguments,
            5 => Self::SystemError,
            _ => return Err(NotAReply),
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Success(results) => {
                put_word(out, 0);
                out.extend_from_slice(results);
            }
            Self::ProgramUnavailable => put_word(out, 1),
            Self::ProgramMismatch(versions) => {
                put_word(out, 2);
                versions.put(out);
            }
            Self::ProcedureUnavailable => put_word(out, 3),
            Self::GarbageArguments => put_word(out, 4),
            Self::SystemError => put_word(out, 5),
        }
    }
}

impl Versions {
    fn read(reader: &mut Reader<'_>) -> Result<Self, NotAReply> {
        Ok(Self { low: word(reader)?, high: word(reader)? })
    }

    fn put(self, out: &mut Vec<u8>) {
        put_word(out, self.low);
        put_word(out, self.high);
    }
}

fn word(reader: &mut Reader<'_>) -> Result<u32, NotAReply> {
    reader.word().map_err(|_| NotAReply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn encoded_call(call: &Call<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        call.encode(&mut out);
        out
    }

    fn encoded_reply(reply: &Reply<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        reply.encode(&mut out);
        out
    }

    /// A call of procedure 0 without authentication, written out from RFC 5531, section 9.
    const NULL_CALL: [u8; CALL_HEADER_LEN] = [
        0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0, 0, 0, 0, 2, 0x20, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn a_call_is_as_the_rfc_writes_it() {
        let call = Call {
            xid: 0x1234_5678,
            program: 0x2000_0001,
            version: 3,
            procedure: 0,
            credential: Auth::NONE,
            verifier: Auth::NONE,
            arguments: &[],
        };
        assert_eq!(encoded_call(&call), NULL_CALL);
        assert_eq!(Call::parse(&NULL_CALL), Ok(call));
        let changed = |at: usize, byte| {
            let mut bytes = NULL_CALL;
            bytes[at] = byte;
            Call::parse(&bytes).map(|call| call.xid)
        };
        let xid = call.xid;
        assert_eq!(changed(7, 1), Err(CallError::NotACall));
        assert_eq!(changed(11, 3), Err(CallError::RpcVersion { xid }));
        // A body of 512 bytes or more is too long. One of 4 bytes takes the flavor of the verifier.
        assert_eq!(changed(30, 2), Err(CallError::Credential { xid }));
        assert_eq!(changed(38, 2), Err(CallError::Verifier { xid }));
        assert_eq!(changed(31, 4), Err(CallError::NotACall));
    }

    #[test]
    fn every_reply_is_as_the_rfc_writes_it() {
        let versions = Versions { low: 2, high: 5 };
        let accepted = |status| Reply::accepted(7, status).body;
        for (body, words) in [
            (accepted(AcceptStatus::Success(&[])), &[0, 0, 0, 0][..]),
            (accepted(AcceptStatus::ProgramUnavailable), &[0, 0, 0, 1]),
            (accepted(AcceptStatus::ProgramMismatch(versions)), &[0, 0, 0, 2, 2, 5]),
            (accepted(AcceptStatus::ProcedureUnavailable), &[0, 0, 0, 3]),
            (accepted(AcceptStatus::GarbageArguments), &[0, 0, 0, 4]),
            (accepted(AcceptStatus::SystemError), &[0, 0, 0, 5]),
            (ReplyBody::RpcMismatch(versions), &[1, 0, 2, 5]),
            (ReplyBody::AuthError(AuthStatus::BAD_VERIFIER), &[1, 1, 3]),
        ] {
            let reply = Reply { xid: 7, body };
            let bytes: Vec<u8> =
                [7, 1].iter().chain(words).flat_map(|word: &u32| word.to_be_bytes()).collect();
            assert_eq!(encoded_reply(&reply), bytes);
            assert_eq!(Reply::parse(&bytes), Ok(reply));
        }
    }

    proptest! {
        #[test]
        fn whatever_parses_encodes_to_the_same_bytes(
            words in vec(prop_oneof![0u32..8, any::<u32>()], 0..16), cut in 0usize..4,
        ) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            let bytes = &bytes[..bytes.len().saturating_sub(cut)];
            if let Ok(call) = Call::parse(bytes) {
                prop_assert_eq!(&encoded_call(&call)[..], bytes);
            }
            if let Ok(reply) = Reply::parse(bytes) {
                prop_assert_eq!(&encoded_reply(&reply)[..], bytes);
            }
        }

        #[test]
        fn what_is_encoded_parses_to_the_same_call(
            xid: u32, program: u32, version: u32, procedure: u32, flavors: (u32, u32),
            bodies in (vec(any::<u8>(), 0..=MOST_AUTH_BYTES), vec(any::<u8>(), 0..=MOST_AUTH_BYTES)),
            arguments in vec(any::<u8>(), 0..20),
        ) {
            let credential = Auth { flavor: flavors.0, body: &bodies.0 };
            let verifier = Auth { flavor: flavors.1, body: &bodies.1 };
            let call = Call { xid, program, version, procedure, credential, verifier, arguments: &arguments };
            let bytes = encoded_call(&call);
            prop_assert_eq!(Call::parse(&bytes), Ok(call));
        }
    }
}
