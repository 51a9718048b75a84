//! Steering beside a port of a switch, on one interface.
//!
//! Frames that no entry matches are the port's there, so steering must not place them.

use super::abi::SteerConfig;
use crate::hook::{Hook, HookError, Stage};
use aya::maps::{Array, Map, MapData, MapInfo};
use aya::programs::loaded_programs;

/// Tells if steering places frames without an entry, too. Then none are left for a port.
///
/// # Errors
/// Another program is on the interface, or the kernel refuses to tell.
pub fn places_missed(index: u32) -> Result<bool, HookError> {
    let program = Hook::program_at(index, Stage::Steer)?;
    let config = program.and_then(config_of);
    Ok(config.is_some_and(|config| config.groups != 0 || config.is_fcf == 1))
}

/// The options in force of the program with that number.
fn config_of(program: u32) -> Option<SteerConfig> {
    let info = loaded_programs().flatten().find(|info| info.id() == program)?;
    let maps = info.map_ids().ok()??;
    let is_config =
        |id: &u32| MapInfo::from_id(*id).is_ok_and(|map| map.name_as_str() == Some("config"));
    let map = MapData::from_id(maps.into_iter().find(is_config)?).ok()?;
    Array::<MapData, SteerConfig>::try_from(Map::Array(map)).ok()?.get(&0, 0).ok()
}
