//! TTLs of MPLS shims and IP headers. No TTL is in the key, so the key never changes here.

use super::{Edit, EditError, Version, sums};
use crate::checksum::update;
use crate::{Field, Head, Key, Layers, eth_type, ip_proto};

/// Where a TTL lies.
#[derive(Clone, Copy)]
enum TtlAt {
    /// In the last byte of the shim here.
    Shim(usize),
    /// In the IPv4 header here.
    Ipv4(usize),
    /// In the IPv6 header here: the hop limit.
    Ipv6(usize),
}

/// The IPv4 TTL or the IPv6 hop limit of a parsed head, where [`Edit::dec_nw_ttl`] would decrement one.
#[inline]
pub fn nw_ttl(head: &Head, key: &Key, layers: &Layers) -> Option<u8> {
    let at = usize::from(layers.ip);
    let offset = match key.get(Field::EthType) as u16 {
        _ if at == 0 => return None,
        eth_type::IPV4 => TtlAt::Ipv4(at).offset(),
        eth_type::IPV6 => TtlAt::Ipv6(at).offset(),
        _ => return None,
    };
    head.bytes().get(offset).copied()
}

impl Edit<'_> {
    /// Sets the TTL of the first MPLS shim.
    ///
    /// # Errors
    /// `NotPresent` without a shim.
    pub fn set_mpls_ttl(&mut self, ttl: u8) -> Result<(), EditError> {
        let at = self.shim_ttl()?;
        self.write_ttl(at, ttl)
    }

    /// Decrements the TTL of the first MPLS shim.
    ///
    /// # Errors
    /// `TtlExpired` at 0 and 1, the frame unchanged; `NotPresent` without a shim.
    pub fn dec_mpls_ttl(&mut self) -> Result<(), EditError> {
        let at = self.shim_ttl()?;
        self.decrement(at)
    }

    /// Sets the IPv4 TTL or the IPv6 hop limit.
    ///
    /// # Errors
    /// `NotPresent` if the frame is not IP; below an MPLS stack nothing is touched.
    pub fn set_nw_ttl(&mut self, ttl: u8) -> Result<(), EditError> {
        let at = self.ip_ttl()?;
        self.write_ttl(at, ttl)
    }

    /// Decrements the IPv4 TTL or the IPv6 hop limit.
    ///
    /// # Errors
    /// `TtlExpired` at 0 and 1, the frame unchanged; `NotPresent` if the frame is not IP.
    #[inline]
    pub fn dec_nw_ttl(&mut self) -> Result<(), EditError> {
        let at = self.ip_ttl()?;
        self.decrement(at)
    }

    /// Copies the TTL of the second header that has one to the first: shim to shim, IP to shim, or inner IP to outer IP.
    ///
    /// # Errors
    /// `NotPresent` without two such headers.
    pub fn copy_ttl_out(&mut self) -> Result<(), EditError> {
        let (outer, inner) = self.two_outermost()?;
        let ttl = self.read_ttl(inner)?;
        self.write_ttl(outer, ttl)
    }

    /// Copies the TTL of the first header that has one to the second.
    ///
    /// # Errors
    /// `NotPresent` without two such headers.
    pub fn copy_ttl_in(&mut self) -> Result<(), EditError> {
        let (outer, inner) = self.two_outermost()?;
        let ttl = self.read_ttl(outer)?;
        self.write_ttl(inner, ttl)
    }

    /// The IP TTL, if the frame is IP.
    pub(super) fn nw_ttl(&self) -> Option<u8> {
        nw_ttl(self.head, self.key, self.layers)
    }

    fn shim_ttl(&self) -> Result<TtlAt, EditError> {
        match self.layers.labels {
            0 => Err(EditError::NotPresent),
            _ => Ok(TtlAt::Shim(usize::from(self.layers.l3))),
        }
    }

    fn ip_ttl(&self) -> Result<TtlAt, EditError> {
        self.ip().map(|(at, version)| match version {
            Version::V4 => TtlAt::Ipv4(at),
            Version::V6 => TtlAt::Ipv6(at),
        })
    }

    fn two_outermost(&self) -> Result<(TtlAt, TtlAt), EditError> {
        let (l3, ip) = (usize::from(self.layers.l3), usize::from(self.layers.ip));
        match self.layers.labels {
            0 => Ok((self.ip_ttl()?, self.inner_ip_ttl()?)),
            1 if ip != 0 => Ok((TtlAt::Shim(l3), self.ttl_at(ip, None)?)),
            1 => Err(EditError::NotPresent),
            _ => Ok((TtlAt::Shim(l3), TtlAt::Shim(l3 + 4))),
        }
    }

    /// The TTL of the IP header that an IP header carries (RFC 2003, RFC 2473), if it lies in the head.
    fn inner_ip_ttl(&self) -> Result<TtlAt, EditError> {
        let version = match self.key.get(Field::IpProto) as u8 {
            ip_proto::IPV4 => Version::V4,
            ip_proto::IPV6 => Version::V6,
            _ => return Err(EditError::NotPresent),
        };
        let is_later_fragment = self.key.get(Field::IpFrag) & 2 != 0;
        match usize::from(self.layers.payload) {
            0 => Err(EditError::NotPresent),
            _ if is_later_fragment => Err(EditError::NotPresent),
            at => self.ttl_at(at, Some(version)),
        }
    }

    /// The TTL of the IP header at `at`, whose whole fixed part must be there and be of the `wanted` version.
    fn ttl_at(&self, at: usize, wanted: Option<Version>) -> Result<TtlAt, EditError> {
        let [first] = self.bytes_at(at)?;
        match first >> 4 {
            4 if wanted != Some(Version::V6) => self.bytes_at::<20>(at).map(|_| TtlAt::Ipv4(at)),
            6 if wanted != Some(Version::V4) => self.bytes_at::<40>(at).map(|_| TtlAt::Ipv6(at)),
            _ => Err(EditError::NotPresent),
        }
    }

    fn read_ttl(&self, at: TtlAt) -> Result<u8, EditError> {
        let [ttl] = self.bytes_at(at.offset())?;
        Ok(ttl)
    }

    fn write_ttl(&mut self, at: TtlAt, ttl: u8) -> Result<(), EditError> {
        let old = self.read_ttl(at)?;
        self.put(at.offset(), [ttl])?;
        if let TtlAt::Ipv4(ip) = at {
            // TTL is the high byte of its word.
            sums::ipv4_header(
                self.head.bytes_mut(),
                ip,
                sums::Change::of(u128::from(old) << 8, u128::from(ttl) << 8),
            );
        }
        Ok(())
    }

    #[inline]
    fn decrement(&mut self, at: TtlAt) -> Result<(), EditError> {
        if let TtlAt::Ipv4(ip) = at {
            return self.decrement_ipv4(ip);
        }
        match self.read_ttl(at)? {
            0 | 1 => Err(EditError::TtlExpired),
            ttl => self.write_ttl(at, ttl - 1),
        }
    }

    /// What a router does with every packet, so the shortest way: TTL and checksum are found at once, and what the checksum
    /// changes by is the same for every TTL.
    fn decrement_ipv4(&mut self, ip: usize) -> Result<(), EditError> {
        let rest = self.head.bytes_mut().get_mut(ip..);
        let header: &mut [u8; 12] =
            rest.and_then(|rest| rest.first_chunk_mut()).ok_or(EditError::NotPresent)?;
        let [.., ttl, _, high, low] = header;
        if *ttl <= 1 {
            return Err(EditError::TtlExpired);
        }
        *ttl -= 1;
        [*high, *low] = update(u16::from_be_bytes([*high, *low]), 1 << 8, 0).to_be_bytes();
        Ok(())
    }
}

impl TtlAt {
    fn offset(self) -> usize {
        match self {
            Self::Shim(at) => at + 3,
            Self::Ipv4(at) => at + 8,
            Self::Ipv6(at) => at + 7,
        }
    }
}
