//! The hardware addresses of hosts, as the kernel knows them. The kernel asks for them (ARP) when a socket sends to a
//! host.

use netdyno_protocol::frame::ethernet::HardwareAddress;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::Ipv4Addr;

/// The neighbours of this thread's network namespace.
const NEIGHBOURS: &str = "/proc/thread-self/net/arp";
/// The routes of this thread's network namespace.
const ROUTES: &str = "/proc/thread-self/net/route";
/// The flag of a neighbour whose hardware address is known.
const IS_COMPLETE: u32 = 2;
/// The flags of a route that is up, and of one that leads to a gateway.
const IS_UP: u32 = 1;
const HAS_GATEWAY: u32 = 2;

/// The kernel's tables of one network namespace. The open files belong to it, whichever thread reads them.
#[derive(Debug)]
pub struct Neighbours {
    routes: File,
    neighbours: File,
}

impl Neighbours {
    /// Opens the tables of this thread's network namespace.
    ///
    /// # Errors
    /// Returns an error if the system does not show them.
    pub fn open() -> io::Result<Self> {
        Ok(Self { routes: File::open(ROUTES)?, neighbours: File::open(NEIGHBOURS)? })
    }

    /// Returns whether the default route leads over an interface.
    pub fn is_default(&self, interface: &str) -> bool {
        let routes = read_again(&self.routes).unwrap_or_default();
        routes
            .lines()
            .skip(1)
            .filter_map(Route::parse)
            .any(|route| route.mask == 0 && route.interface == interface)
    }

    /// Returns the hardware address to which an interface sends what is for `host`: the host's own, or that of a
    /// gateway. `None` if the kernel does not know it, or if no route leads over the interface.
    pub fn hardware_towards(&self, host: Ipv4Addr, interface: &str) -> Option<HardwareAddress> {
        let next = next_hop(&read_again(&self.routes).ok()?, host, interface)?;
        hardware_of(&read_again(&self.neighbours).ok()?, next, interface)
    }
}

fn read_again(mut table: &File) -> io::Result<String> {
    let mut text = String::new();
    table.rewind()?;
    table.read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the next hop towards a host by the routes over an interface. Routes over others do not count, as for a
/// socket that is bound to the interface.
fn next_hop(routes: &str, host: Ipv4Addr, interface: &str) -> Option<Ipv4Addr> {
    let routes = routes.lines().skip(1).filter_map(Route::parse);
    let leading = routes.filter(|route| route.interface == interface && route.leads_to(host));
    let best = leading.max_by_key(|route| (route.mask.count_ones(), u32::MAX - route.metric))?;
    Some(best.gateway.unwrap_or(host))
}

/// A line of the table of routes. Addresses are numbers in the order of their bytes.
struct Route<'a> {
    interface: &'a str,
    destination: u32,
    mask: u32,
    metric: u32,
    gateway: Option<Ipv4Addr>,
}

impl<'a> Route<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok();
        let flags = number(3)?;
        if flags & IS_UP == 0 {
            return None;
        }
        let gateway = (flags & HAS_GATEWAY != 0).then_some(Ipv4Addr::from(number(2)?.to_ne_bytes()));
        let metric = words.get(6)?.parse().ok()?;
        Some(Self { interface: words[0], destination: number(1)?, mask: number(7)?, metric, gateway })
    }

    fn leads_to(&self, host: Ipv4Addr) -> bool {
        u32::from_ne_bytes(host.octets()) & self.mask == self.destination
    }
}

/// Returns the hardware address of a neighbour by the kernel's table of neighbours.
fn hardware_of(neighbours: &str, host: Ipv4Addr, interface: &str) -> Option<HardwareAddress> {
    neighbours.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [ip, _, flags, hardware, .., device] = words[..] else { return None };
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
        let is_it = ip.parse() == Ok(host) && device == interface && flags & IS_COMPLETE != 0;
        if is_it { parse_hardware(hardware) } else { None }
    })
}

fn parse_hardware(text: &str) -> Option<HardwareAddress> {
    let mut address = HardwareAddress::default();
    let mut words = text.split(':');
    for byte in &mut address {
        *byte = u8::from_str_radix(words.next()?, 16).ok()?;
    }
    words.next().is_none().then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ARP: &str = "IP address       HW type     Flags       HW address            Mask     Device
10.1.0.2         0x1         0x2         02:00:00:00:00:07     *        near
10.1.0.9         0x1         0x0         00:00:00:00:00:00     *        near
10.1.0.2         0x1         0x2         02:00:00:00:00:08     *        other
";

    fn route(interface: &str, [destination, gateway, mask]: [[u8; 4]; 3], flags: u32, metric: u32) -> String {
        let [destination, gateway, mask] = [destination, gateway, mask].map(u32::from_ne_bytes);
        format!(
            "{interface}\t{destination:08X}\t{gateway:08X}\t{flags:04X}\t0\t0\t{metric}\t{mask:08X}\t0\t0\t0\n"
        )
    }

    #[test]
    fn a_neighbour_is_known_by_its_address_and_interface() {
        let of = |host: [u8; 4], interface| hardware_of(ARP, host.into(), interface);
        assert_eq!(of([10, 1, 0, 2], "near"), Some([2, 0, 0, 0, 0, 7]));
        assert_eq!(of([10, 1, 0, 2], "other"), Some([2, 0, 0, 0, 0, 8]));
        assert_eq!((of([10, 1, 0, 9], "near"), of([10, 1, 0, 3], "near")), (None, None));
    }

    #[test]
    fn the_narrowest_route_leads_on() {
        let (none, all) = ([0; 4], [255; 4]);
        let routes = [
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n".to_owned(),
            route("near", [none, [10, 1, 0, 254], none], 3, 100),
            route("other", [none, [10, 2, 0, 254], none], 3, 200),
            route("near", [[10, 1, 0, 0], none, [255, 255, 255, 0]], 1, 0),
            route("other", [[10, 1, 0, 77], none, all], 5, 0),
            route("other", [[10, 1, 0, 78], none, all], 4, 0),
        ]
        .concat();
        let next = |host: [u8; 4]| next_hop(&routes, host.into(), "near").map(|next| next.octets());
        assert_eq!(next([10, 1, 0, 2]), Some([10, 1, 0, 2]));
        assert_eq!(next([192, 0, 2, 1]), Some([10, 1, 0, 254]));
        // Routes over other interfaces, and routes that are not up, do not count.
        assert_eq!(next([10, 1, 0, 77]), Some([10, 1, 0, 77]));
        assert_eq!(next([10, 1, 0, 78]), Some([10, 1, 0, 78]));
        assert_eq!(next_hop("", [10, 1, 0, 2].into(), "near"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(\\PC{0,30}\n){0,4}", host: Ipv4Addr) {
            let _ = (next_hop(&text, host, "near"), hardware_of(&text, host, "near"));
        }
    }
}
