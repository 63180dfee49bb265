//! Parses any bytes as the address of a UDP port. They are refused, or encode to the same bytes again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::datagram::LONGEST_PAYLOAD;
use netdyno_protocol::frame::port::window_is_valid;
use netdyno_protocol::frame::udp_port::UdpPortAddress;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(address) = UdpPortAddress::parse(bytes) {
        assert_eq!(address.encode(), bytes);
        assert!(window_is_valid(address.window));
        assert!(address.medium_bytes as usize <= LONGEST_PAYLOAD);
        // The address is that of one peer.
        let ip = address.socket.ip();
        assert!(address.socket.port() > 0 && !ip.is_unspecified() && !ip.is_multicast());
    }
});
