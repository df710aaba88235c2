use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use playfield_room::recording::{
    About, BlockKind, Blocks, Files, HEAD, ReadLimit, Recording, RecordingWriter, Why,
};
use playfield_room::{AnyRoom, Birth, Creator, KeyOrigin, Record, Room, RoomType, room};
use playfield_state::{Format, State};

use super::writer::FILES_OPEN_MAX;
use super::{
    QUEUE_BYTES_MAX, QUEUE_MAX, Queue, RecordingFiles, RecordingSource, Recordings, RoomFiles,
};
use crate::config;
use crate::room_id::RoomId;

#[derive(State, Default)]
struct Empty {}

#[room()]
impl Room for Empty {}

/// A folder that is removed when dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("playfield-recordings-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn recordings(&self, folder_bytes: usize) -> Recordings {
        let config = config::Recordings {
            folder: self.0.clone(),
            folder_bytes,
            ..config::Recordings::default()
        };
        Recordings::start(&config).unwrap().expect("a folder is set")
    }

    fn files(&self) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn room_type(record: Record) -> RoomType {
    let mut room_type = RoomType::of::<Empty>("an empty/room");
    room_type.settings.record = record;
    room_type
}

fn room(recordings: &Recordings, record: Record) -> Box<dyn AnyRoom> {
    let room_type = room_type(record);
    let birth = Birth {
        id: "room".into(),
        room_type: room_type.name.clone(),
        key: None,
        key_origin: KeyOrigin::Chosen,
        seed: 1,
        settings: room_type.settings,
        private: false,
        options: &[],
        format: Format::Packed,
        creator: Creator::Node,
        store: None,
        seats: Vec::new(),
    };
    let room = (room_type.create)(birth).unwrap();
    recordings.record(room, RoomId::from_random([7; 10]), &room_type)
}

#[test]
fn a_room_type_is_recorded_always_or_never() {
    let folder = Folder::new("always");
    let recordings = folder.recordings(1 << 20);
    drop(room(&recordings, Record::Always));
    assert!(room(&recordings, Record::Never).recorder().is_none());
    drop(room(&recordings, Record::Failures));
    recordings.flush(Duration::from_secs(10));
    let files = folder.files();
    let [file] = &files[..] else { panic!("{files:?}") };
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("an_empty_room-") && name.ends_with(".rec"), "{name}");
    // Nothing was called, so there is nothing of the room.
    let error = Recording::read(&std::fs::read(file).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "the recording ends before the first keyframe of the room");
}

#[cfg(unix)]
#[test]
fn only_this_user_can_read_recordings() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new("user");
    let recordings = folder.recordings(1 << 20);
    drop(room(&recordings, Record::Always));
    recordings.flush(Duration::from_secs(10));
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder.0), mode(&folder.files()[0])), (0o700, 0o600));
}

#[test]
fn a_folder_has_a_limit() {
    let folder = Folder::new("limit");
    let recordings = folder.recordings(1_000);
    let files = || folder.files().iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    let mut of = RoomFiles {
        queue: recordings.queue.clone(),
        about: Default::default(),
        number: 0,
        is_lost: false,
    };
    of.begin(&Why::Request);
    for _ in 0..10 {
        // Too short to be deflated.
        of.block(BlockKind::Gap, vec![7; 100]);
    }
    of.end();
    recordings.flush(Duration::from_secs(10));
    let bytes = files();
    assert!((800..=1_000).contains(&bytes), "{bytes}");
    for _ in 0..10 {
        drop(room(&recordings, Record::Always));
    }
    recordings.flush(Duration::from_secs(10));
    assert!(files() <= 1_000, "{}", files());
}

#[test]
fn a_file_whose_folder_cant_be_used_disturbs_nobody() {
    let folder = Folder::new("file");
    std::fs::write(&folder.0, "a file").unwrap();
    let recordings = folder.recordings(1 << 20);
    let mut room = room(&recordings, Record::Always);
    room.pass_syncs(1);
    assert_eq!(room.version(), 2);
    drop(room);
    recordings.flush(Duration::from_secs(10));
    std::fs::remove_file(&folder.0).unwrap();
}

#[test]
fn what_the_disk_is_too_slow_for_is_lost_and_nothing_waits() {
    let (queue, orders) = Queue::new();
    let lost = Arc::clone(&queue.lost);
    let mut files = RoomFiles { queue, about: Default::default(), number: 0, is_lost: false };
    files.begin(&Why::Request);
    for _ in 0..=QUEUE_MAX {
        files.block(BlockKind::Gap, Vec::new());
    }
    assert!(files.is_lost);
    assert_eq!(lost.load(Ordering::Relaxed), 1);
    assert_eq!(orders.try_iter().count(), QUEUE_MAX);
    files.block(BlockKind::Gap, Vec::new());
    assert!(matches!(orders.try_recv(), Ok(super::Order::End(_))));
    files.block(BlockKind::Gap, Vec::new());
    assert!(orders.try_recv().is_err());
    files.begin(&Why::Request);
    assert!(matches!(orders.try_recv(), Ok(super::Order::Begin(..))));
}

#[test]
fn blocks_that_wait_are_limited_in_bytes() {
    let (queue, orders) = Queue::new();
    let mut files = RoomFiles { queue, about: Default::default(), number: 0, is_lost: false };
    files.begin(&Why::Request);
    for _ in 0..QUEUE_BYTES_MAX >> 20 {
        files.block(BlockKind::Gap, vec![0; 1 << 20]);
    }
    assert!(!files.is_lost);
    files.block(BlockKind::Gap, vec![0]);
    assert!(files.is_lost);
    assert_eq!(orders.try_iter().count(), 1 + (QUEUE_BYTES_MAX >> 20));
}

#[test]
fn thousands_of_rooms_are_recorded_at_once_and_none_is_lost() {
    const ROOMS: u64 = 3_000;
    let folder = Folder::new("thousands");
    let recordings = folder.recordings(1 << 30);
    let mut all: Vec<_> = (0..ROOMS)
        .map(|number| {
            let about = About { room_id: format!("{number:016}"), ..Default::default() };
            let queue = recordings.queue.clone();
            let mut files = RoomFiles { queue, about, number: 0, is_lost: false };
            files.begin(&Why::Setting);
            files.block(BlockKind::Gap, vec![1; 100]);
            files
        })
        .collect();
    recordings.flush(Duration::from_secs(60));
    #[cfg(target_os = "linux")]
    {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().filter(|entry| {
            let target = entry.as_ref().ok().and_then(|entry| entry.path().read_link().ok());
            target.is_some_and(|target| target.starts_with(&folder.0))
        });
        assert_eq!(open.count(), FILES_OPEN_MAX);
    }
    for round in 2..5 {
        all.iter_mut().for_each(|files| files.block(BlockKind::Gap, vec![round; 100]));
    }
    all.iter_mut().for_each(|files| files.end());
    recordings.flush(Duration::from_secs(60));
    assert_eq!(recordings.lost(), 0);
    let written = folder.files();
    assert_eq!(written.len() as u64, ROOMS);
    for path in written {
        let bytes = std::fs::read(&path).unwrap();
        let blocks: Result<Vec<_>, _> = Blocks::new(&bytes, HEAD.len()).collect();
        let rounds: Vec<u8> = blocks.unwrap().iter().skip(1).map(|it| it.content[0]).collect();
        assert_eq!(rounds, [1, 2, 3, 4], "{}", path.display());
    }
}

#[test]
fn a_small_file_that_is_large_when_inflated_is_refused_by_its_size() {
    const LIMIT: ReadLimit = ReadLimit { bytes: 3 << 19 };
    let folder = Folder::new("inflated");
    let mut file = Vec::new();
    let mut writer = RecordingWriter::begin(&About::default(), &mut file);
    for _ in 0..4 {
        writer.block(BlockKind::Inputs, &vec![0; 1 << 20], &mut file);
    }
    assert!(file.len() < 20_000, "{} bytes", file.len());
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("small-1.rec"), &file).unwrap();
    let files = RecordingFiles { folder: Some(folder.0.clone()), journal: None };
    let source = RecordingSource { file: "small-1.rec".into(), room: "room".into() };
    let why = files.read_within(&source, LIMIT).unwrap_err().text().to_owned();
    for part in ["small-1.rec", "3145728 bytes when it is inflated", "`replay small-1.rec --max"] {
        assert!(why.contains(part), "{part} is missing in: {why}");
    }
    let twice = ReadLimit { bytes: 2 * LIMIT.bytes };
    let why = files.read_within(&source, twice).unwrap_err().text().to_owned();
    assert!(!why.contains("inflated"), "{why}");
}

#[test]
fn a_file_that_is_too_long_to_be_played_is_listed_and_refused_by_its_size() {
    let folder = Folder::new("long");
    drop(room(&folder.recordings(1 << 20), Record::Always));
    // The thread that writes ends with the recordings.
    while folder.files().is_empty() {
        std::thread::yield_now();
    }
    let path = folder.files().remove(0);
    let limit = ReadLimit::default().bytes;
    let bytes = limit + 1;
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    let files = RecordingFiles { folder: Some(folder.0.clone()), journal: None };
    let (count, listed) = files.list("", 0, 10).unwrap();
    assert_eq!((count, listed[0].bytes), (1, bytes));
    let too_large = listed[0].too_large.as_deref().expect("it says so");
    let source = RecordingSource { file: listed[0].file.clone(), room: "room".into() };
    let why = files.read(&source).unwrap_err().text().to_owned();
    for part in [&source.file, &bytes.to_string(), &limit.to_string(), "`replay", "--max-bytes"] {
        assert!(why.contains(part), "{part} is missing in: {why}");
        assert!(too_large.contains(part), "{part} is missing in: {too_large}");
    }
}
