//! The guest of a vhost-user port, as `suiro port show` prints it.

use crate::table::{Table, dash};
use api::{FrontEndView, RingView};

/// Lines under the port's own.
pub fn show(guest: &FrontEndView) -> String {
    let role = if guest.server { "suiro listens" } else { "suiro calls" };
    let since = guest.connected_s.map_or_else(String::new, |seconds| format!(" for {seconds} s"));
    let mut text =
        format!("  guest       {}{since}, socket {} ({role})\n", guest.state, guest.socket);
    guest.waits_for.iter().for_each(|why| text += &format!("  waits for   {why}\n"));
    if let Some(error) = &guest.last_error {
        text += &format!(
            "  last error  {} ({} so far)\n  remedy      {}\n",
            error.cause, error.count, error.remedy
        );
    }
    if let Some(kind) = &guest.ring_kind {
        text += &format!("  rings       {kind}\n  features    {}\n", guest.features.join(", "));
    }
    if !guest.protocol_features.is_empty() {
        text += &format!("  protocol    {}\n", guest.protocol_features.join(", "));
    }
    for region in &guest.memory {
        let state = if region.withdrawn { ", WITHDRAWN" } else { "" };
        let size = short_bytes(region.bytes);
        text +=
            &format!("  memory      {size} at guest address {:#x}{state}\n", region.guest_address);
    }
    text + &rings(&guest.rings)
}

fn rings(rings: &[RingView]) -> String {
    let mut table = Table::new(&[
        "",
        ">PAIR",
        "DIR",
        ">CORE",
        "ENABLED",
        "STATE",
        ">SIZE",
        ">AVAILABLE",
        "REACH",
        "WHY",
    ]);
    for ring in rings {
        table.row(vec![
            String::new(),
            ring.pair.to_string(),
            ring.direction.clone(),
            dash(ring.core),
            if ring.enabled { "yes" } else { "no" }.into(),
            ring.state.clone(),
            dash((ring.size > 0).then_some(ring.size)),
            ring.available.to_string(),
            dash(ring.reach.as_deref()),
            ring.why.clone().unwrap_or_default(),
        ]);
    }
    table.to_string()
}

fn short_bytes(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mib => format!("{mib} MiB"),
    }
}
