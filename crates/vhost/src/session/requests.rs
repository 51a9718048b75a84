//! Requests as the protocol crate hands them over, to calls of the device.

use super::device::{Device, OFFERED, PROTOCOL, SLOTS_MAX};
use super::ring_setup::Addresses;
use super::trouble::Trouble;
use crate::RegionSpec;
use std::fs::File;
use std::io;
use vhost_protocol::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost_protocol::vhost_user::{
    Error, GpuBackend, Result, VhostUserBackendReqHandlerMut, VhostUserProtocolFeatures,
};

/// Our reason travels inside the crate's error and is taken out by [`Trouble::of`].
fn told<T>(result: std::result::Result<T, Trouble>) -> Result<T> {
    result.map_err(|trouble| Error::ReqHandlerError(io::Error::other(trouble)))
}

/// Answers a request that needs a feature that we never offer.
fn never<T>() -> Result<T> {
    Err(Error::InvalidOperation("needs a feature that was not offered"))
}

fn region(region: &VhostUserMemoryRegion, file: File) -> RegionSpec {
    RegionSpec {
        guest: region.guest_phys_addr,
        user: region.user_addr,
        size: region.memory_size,
        offset: region.mmap_offset,
        file: file.into(),
    }
}

impl VhostUserBackendReqHandlerMut for Device {
    /// Says that a session begins; nothing follows from it.
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    /// "Either ignore this message, or use it to disable all rings."
    fn reset_owner(&mut self) -> Result<()> {
        told(self.disable())
    }

    fn reset_device(&mut self) -> Result<()> {
        self.reset();
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(OFFERED.bits())
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        told(Device::set_features(self, features))
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(PROTOCOL)
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<()> {
        told(Device::set_protocol_features(self, features))
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(self.ring_count())
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy: Option<bool>,
    ) -> Result<Option<Vec<u64>>> {
        let specs: Vec<_> =
            regions.iter().zip(files).map(|(described, file)| region(described, file)).collect();
        told(self.set_memory(&specs)).map(|()| None)
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(SLOTS_MAX as u64)
    }

    fn add_mem_region(
        &mut self,
        described: &VhostUserSingleMemoryRegion,
        file: File,
        _postcopy: Option<bool>,
    ) -> Result<Option<u64>> {
        told(self.add_region(&region(described, file))).map(|()| None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        told(self.remove_region(region.guest_phys_addr, region.user_addr, region.memory_size))
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        told(self.set_size(index, num))
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        flags: VhostUserVringAddrFlags,
        descriptor: u64,
        used: u64,
        available: u64,
        log: u64,
    ) -> Result<()> {
        let log = flags.contains(VhostUserVringAddrFlags::VHOST_VRING_F_LOG).then_some(log);
        told(self.set_addresses(
            index,
            Addresses { desc: descriptor, driver: available, device: used, log },
        ))
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        told(self.set_base(index, base))
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        told(self.take_base(index)).map(|base| VhostUserVringState::new(index, base))
    }

    fn set_vring_kick(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        told(self.set_kick(index.into(), fd.map(Into::into)))
    }

    fn set_vring_call(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        told(self.set_call(index.into(), fd.map(Into::into)))
    }

    fn set_vring_err(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        told(self.set_error(index.into(), fd.map(Into::into)))
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        told(self.set_enabled(index, enable))
    }

    fn get_inflight_fd(&mut self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let (queues, size) = (wanted.num_queues, wanted.queue_size);
        let made = told(self.make_inflight(queues, size))?;
        let file = made.file().try_clone_to_owned().map_err(Error::ReqHandlerError)?;
        Ok((VhostUserInflight::new(made.bytes(), 0, queues, size), file.into()))
    }

    fn set_inflight_fd(&mut self, region: &VhostUserInflight, file: File) -> Result<()> {
        let place = (file.into(), region.mmap_offset, region.mmap_size);
        told(self.set_inflight(place, (region.num_queues, region.queue_size)))
    }

    fn set_log_base(&mut self, log: &VhostUserLog, file: File) -> Result<()> {
        told(self.set_log(&file.into(), log.mmap_offset, log.mmap_size))
    }

    fn get_config(&mut self, _: u32, _: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        never()
    }

    fn set_config(&mut self, _: u32, _: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        never()
    }

    fn set_gpu_socket(&mut self, _: GpuBackend) -> Result<()> {
        never()
    }

    fn get_shared_object(&mut self, _: VhostUserSharedMsg) -> Result<File> {
        never()
    }

    fn set_device_state_fd(
        &mut self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        never()
    }

    fn check_device_state(&mut self) -> Result<()> {
        never()
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        never()
    }
}
