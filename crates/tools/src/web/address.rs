//! Which hosts may be asked. What a page says shall never make Helve look into the network that it is in.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// How a host is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostAccess {
    /// Whatever its name means, only public addresses are connected to.
    Public,
    /// The user allowed it, wherever it is.
    Any,
}

/// Why an address is not fetched, with what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AddressRefusal(pub(crate) String);

/// The hosts that may be anywhere: `host`, `*.domain`, each with or without `:port`.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedHosts(Vec<HostPattern>);

#[derive(Clone, Debug)]
struct HostPattern {
    host: String,
    port: Option<u16>,
}

impl AllowedHosts {
    pub(crate) fn new(patterns: &[String]) -> AllowedHosts {
        AllowedHosts(patterns.iter().map(|pattern| HostPattern::read(pattern)).collect())
    }

    fn covers(&self, host: &str, port: Option<u16>) -> bool {
        self.0.iter().any(|pattern| pattern.covers(host, port))
    }
}

impl HostPattern {
    fn read(text: &str) -> HostPattern {
        let text = text.trim().to_ascii_lowercase();
        let split = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        // The colons of an IPv6 address are not followed by a port, unless it stands in brackets.
        let with_port = split.filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
        let (host, port) = with_port.map_or((text.as_str(), None), |(host, port)| (host, Some(port)));
        HostPattern { host: plain(host).to_owned(), port }
    }

    fn covers(&self, host: &str, port: Option<u16>) -> bool {
        let is_host = match self.host.strip_prefix('*') {
            Some(end) => end.starts_with('.') && host.ends_with(end),
            None => self.host == host,
        };
        is_host && self.port.is_none_or(|wanted| port == Some(wanted))
    }
}

/// A host without the brackets of an address and the dot at the end of a name.
fn plain(host: &str) -> &str {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Whether an address may be fetched, as far as it can be told before its host is looked up.
pub(crate) fn admit(url: &Url, allowed: &AllowedHosts) -> Result<HostAccess, AddressRefusal> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AddressRefusal(format!("Only http and https can be fetched, not {}:.", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressRefusal("The address holds a name or a password. Leave them out.".to_owned()));
    }
    let Some(host) = url.host() else { return Err(AddressRefusal("The address names no host.".to_owned())) };
    let name = host.to_string();
    let name = plain(&name);
    if allowed.covers(name, url.port_or_known_default()) {
        return Ok(HostAccess::Any);
    }
    let is_inside = match host {
        Host::Ipv4(address) => !is_public(address.into()),
        Host::Ipv6(address) => !is_public(address.into()),
        Host::Domain(_) => is_local_name(name),
    };
    if is_inside { Err(inside(name)) } else { Ok(HostAccess::Public) }
}

pub(crate) fn inside(host: &str) -> AddressRefusal {
    AddressRefusal(format!(
        "{host} is on this machine or in its own network, which is not fetched. If it must be, ask the person to add it to \
         the setting web.allow."
    ))
}

fn is_local_name(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    matches!(last, "localhost" | "local")
}

/// Whether an address belongs to the internet, and not to a machine, a network, a tunnel into one, or nobody.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 168, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            // Every machine of a large cloud finds its host there.
            | [168, 63, 129, 16]
            | [224..=255, ..]
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // IPv4-mapped, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        // Protocols (Teredo among them) and documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

/// Looks names up, and gives only the public addresses on. They are the ones that are connected to: whoever answers
/// otherwise the next time gains nothing.
pub(crate) struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<SocketAddr> =
                found.iter().copied().filter(|address| is_public(address.ip())).collect();
            if public.is_empty() && !found.is_empty() {
                return Err(Box::new(NoPublicAddress) as Box<dyn Error + Send + Sync>);
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// A name that means only addresses of the own network.
#[derive(Debug)]
pub(crate) struct NoPublicAddress;

impl fmt::Display for NoPublicAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name has no public address")
    }
}

impl Error for NoPublicAddress {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn admitted(url: &str, allowed: &[&str]) -> Result<HostAccess, AddressRefusal> {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        admit(&Url::parse(url).unwrap(), &AllowedHosts::new(&allowed))
    }

    #[test]
    fn public_addresses_are_told_from_others() {
        let public = "1.1.1.1 8.8.8.8 100.63.0.1 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1 198.17.0.1 223.255.255.255 \
                      2606:4700::1111 2001:4860:4860::8888 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1";
        for address in public.split_whitespace() {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        let others = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.255 169.254.169.254 \
                      172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 \
                      198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 ::127.0.0.1 \
                      ::ffff:127.0.0.1 ::ffff:169.254.169.254 64:ff9b::10.0.0.1 64:ff9b:1::1 2002:7f00:1:: \
                      2002:a9fe:a9fe::1 2001::1 2001:db8::1 3fff::1 100::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 \
                      5f00::1 4000::1";
        for address in others.split_whitespace() {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn every_way_to_write_an_inner_address_is_refused() {
        let inner = "http://127.0.0.1/ http://2130706433/ http://0x7f.1/ http://0x7f000001/ http://0177.0.0.1/ http://127.1/ \
                     http://0/ http://[::1]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://169.254.169.254/latest/ \
                     http://localhost/ http://LOCALHOST./ http://a.localhost/ http://printer.local/ http://１２７.０.０.１/ \
                     http://[fe80::1]/ https://192.168.0.1:8443/ http://127.0.0.1./";
        for url in inner.split_whitespace() {
            assert!(admitted(url, &[]).unwrap_err().0.contains("web.allow"), "{url}");
        }
        for url in ["https://example.com/", "http://1.1.1.1:81/", "https://local.example.com/"] {
            assert_eq!(admitted(url, &[]), Ok(HostAccess::Public), "{url}");
        }
        for url in
            ["ftp://example.com/", "file:///etc/passwd", "data:text/plain,x", "http://me:pw@example.com/"]
        {
            assert!(admitted(url, &["*.com", "example.com"]).is_err(), "{url}");
        }
    }

    #[test]
    fn what_the_user_allows_may_be_anywhere() {
        let cases = [
            ("http://localhost:8080/", "localhost:8080", true),
            ("http://localhost:8081/", "localhost:8080", false),
            ("http://localhost/", "localhost:80", true),
            ("http://LocalHost.:9/", "LOCALHOST", true),
            ("http://[::1]:3000/", "[::1]:3000", true),
            ("http://[::1]:3000/", "::1", true),
            ("http://2130706433/", "127.0.0.1", true),
            ("http://wiki.corp.local/", "*.corp.local", true),
            ("http://corp.local/", "*.corp.local", false),
            ("http://evilcorp.local/", "*corp.local", false),
            ("http://127.0.0.1/", "", false),
        ];
        for (url, pattern, is_allowed) in cases {
            assert_eq!(admitted(url, &[pattern]) == Ok(HostAccess::Any), is_allowed, "{url} {pattern}");
        }
    }

    #[tokio::test]
    async fn a_name_that_means_this_machine_is_not_connected_to() {
        let refused = PublicResolver.resolve("localhost".parse().unwrap()).await.err().unwrap();
        assert!(refused.is::<NoPublicAddress>(), "{refused}");
    }

    proptest! {
        /// An address in another dress is as public as it is without.
        #[test]
        fn no_dress_makes_an_address_public(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = address.octets();
            let [high, low] = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
            let dresses = [
                address.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            ];
            for dress in dresses {
                prop_assert_eq!(is_public(dress.into()), is_public(address.into()), "{}", dress);
            }
            let std_says = address.is_private() || address.is_loopback() || address.is_link_local() || address.is_broadcast()
                || address.is_documentation() || address.is_multicast() || address.is_unspecified();
            prop_assert!(!(std_says && is_public(address.into())), "{}", address);
        }

        #[test]
        fn inner_addresses_of_version_6_are_never_public(rest: u128) {
            for prefix in [0xfc00_u16, 0xfd00, 0xfe80, 0xff00, 0] {
                let address = Ipv6Addr::from_bits(rest >> 16 | u128::from(prefix) << 112);
                let is_dressed = address.to_ipv4_mapped().is_some();
                prop_assert!(is_dressed || !is_public(address.into()), "{}", address);
            }
        }

        #[test]
        fn any_pattern_and_address_are_taken(pattern in "[a-z0-9.:*\\[\\]]{0,20}", host in "[a-z0-9.:\\[\\]]{1,20}") {
            if let Ok(url) = Url::parse(&format!("http://{host}/")) {
                let _ = admit(&url, &AllowedHosts::new(&[pattern]));
            }
        }
    }
}
