//! What became of a frame.

use openflow::PacketIn;

/// All that came out of a switch between one frame and the marker after it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Frames by port, in the order of the ports and then of arrival.
    pub frames: Vec<(u32, Vec<u8>)>,
    /// What the controller got.
    pub packet_ins: Vec<PacketIn>,
}

impl Outcome {
    /// Exactly these frames came out of these ports, and the controller got nothing.
    #[track_caller]
    pub fn is_exactly<F: AsRef<[u8]>>(&self, wanted: &[(u32, F)]) {
        assert!(self.packet_ins.is_empty(), "the controller got {:02x?}", self.packet_ins);
        self.frames_are(wanted);
    }

    /// Exactly these frames came out of these ports, whatever the controller got.
    #[track_caller]
    pub fn frames_are<F: AsRef<[u8]>>(&self, wanted: &[(u32, F)]) {
        let show = |(port, frame): (u32, &[u8])| format!("\n  port {port}: {frame:02x?}");
        let wanted: Vec<_> = wanted.iter().map(|(port, frame)| (*port, frame.as_ref())).collect();
        let found: Vec<_> = self.frames.iter().map(|(port, frame)| (*port, &frame[..])).collect();
        if wanted != found {
            let [wanted, found] =
                [wanted, found].map(|list| list.into_iter().map(show).collect::<String>());
            panic!("frames wanted:{wanted}\nframes found:{found}");
        }
    }

    /// This one frame came out of this one port, and nothing else anywhere.
    #[track_caller]
    pub fn is_only(&self, port: u32, frame: &[u8]) {
        self.is_exactly(&[(port, frame)]);
    }

    /// Nothing came out, nor did the controller get anything.
    #[track_caller]
    pub fn is_nothing(&self) {
        self.is_exactly::<&[u8]>(&[]);
    }

    /// The one packet-in; no frame came out.
    #[track_caller]
    pub fn one_packet_in(mut self) -> PacketIn {
        self.frames_are::<&[u8]>(&[]);
        assert_eq!(self.packet_ins.len(), 1, "packet-ins: {:02x?}", self.packet_ins);
        self.packet_ins.remove(0)
    }
}
