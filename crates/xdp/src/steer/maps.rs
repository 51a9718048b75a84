//! Pinned maps, opened with the types that they must have.

use super::error::SteerError;
use super::pins::pin_error;
use crate::MapError;
use crate::mirror::Mirror;
use crate::sys::mapped::Mapped;
use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// A directory of pinned maps.
pub(crate) struct Maps(pub(crate) PathBuf);

impl Maps {
    pub(crate) fn open(&self, name: &str) -> Result<MapData, SteerError> {
        let path = self.0.join(name);
        if !path.exists() {
            return Err(self.other_version(name));
        }
        MapData::from_pin(&path)
            .map_err(|error| pin_error(&path, "open the map")(io::Error::other(error)))
    }

    /// The map by its kind.
    pub(crate) fn map(&self, name: &str) -> Result<Map, SteerError> {
        Map::from_map_data(self.open(name)?).map_err(|_| self.other_version(name))
    }

    pub(crate) fn array<T: aya::Pod>(&self, name: &str) -> Result<Array<MapData, T>, SteerError> {
        let Map::Array(data) = self.map(name)? else { return Err(self.other_version(name)) };
        Array::try_from(Map::Array(data)).map_err(|_| self.other_version(name))
    }

    pub(crate) fn per_cpu<T: aya::Pod>(
        &self,
        name: &str,
    ) -> Result<PerCpuArray<MapData, T>, SteerError> {
        PerCpuArray::try_from(self.map(name)?).map_err(|_| self.other_version(name))
    }

    pub(crate) fn hash<K: aya::Pod, V: aya::Pod>(
        &self,
        name: &str,
    ) -> Result<HashMap<MapData, K, V>, SteerError> {
        HashMap::try_from(self.map(name)?).map_err(|_| self.other_version(name))
    }

    pub(crate) fn mapped<T: Mirror + aya::Pod>(&self, name: &str) -> Result<Mapped<T>, SteerError> {
        // Compares the sizes.
        let array = self.array::<T>(name)?;
        let data = self.open(name)?;
        Mapped::new(data.fd().as_fd(), array.len() as usize)
            .map_err(pin_error(&self.0.join(name), "map the map"))
    }

    pub(crate) fn other_version(&self, name: &str) -> SteerError {
        SteerError::Version { path: self.0.join(name) }
    }
}

/// The number of a map in the kernel.
pub(crate) fn id(map: &MapData, path: &Path) -> Result<u32, SteerError> {
    let info =
        map.info().map_err(|error| pin_error(path, "ask for the map")(io::Error::other(error)))?;
    Ok(info.id())
}

pub(crate) fn access(map: &'static str) -> impl Fn(aya::maps::MapError) -> MapError {
    MapError::access(map)
}
