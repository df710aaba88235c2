//! The file: opened, and opened again after an error of the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use playfield_room::{StoreError, StoreErrorKind, caught};
use redb::backends::FileBackend;
use redb::{Database, DatabaseError, StorageBackend, StorageError, TableDefinition};

use crate::error::{of_opening, of_storage};

/// Saves by room type and key.
pub(crate) const SAVES: TableDefinition<'static, (&str, &str), &[u8]> =
    TableDefinition::new("saves");

/// Opens the database in a file that no one else has open. Tests put a failing disk here.
pub(crate) type Open = Box<dyn Fn(FileBackend) -> Result<Database, DatabaseError> + Send + Sync>;

pub(crate) struct DatabaseFile {
    path: PathBuf,
    open: Open,
    /// `None` after an error of the disk, until the file is opened again.
    database: RwLock<Option<Database>>,
}

impl DatabaseFile {
    pub(crate) fn open(path: &Path, open: Open) -> Result<Self, StoreError> {
        let database = attempt(path, &open)?;
        Ok(Self { path: path.to_owned(), open, database: RwLock::new(Some(database)) })
    }

    /// Runs work on the database. After an error of the disk the database accepts nothing, so the
    /// file is opened again first.
    pub(crate) fn with<T>(
        &self,
        what: &str,
        work: impl FnOnce(&Database) -> Result<T, StorageError>,
    ) -> Result<T, StoreError> {
        {
            let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(database) = &*database {
                return self.run(what, database, work);
            }
        }
        self.reopen()?;
        match &*self.database.read().unwrap_or_else(PoisonError::into_inner) {
            Some(database) => self.run(what, database, work),
            None => Err(self.failed(what, &StorageError::PreviousIo)),
        }
    }

    /// Closes the database after an error that it does not recover from by itself.
    pub(crate) fn close(&self) {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        // Dropping it writes, too, and the disk may fail again.
        let _ = caught(|| drop(database.take()));
    }

    fn reopen(&self) -> Result<(), StoreError> {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        if database.is_none() {
            *database = Some(attempt(&self.path, &self.open)?);
            log::info!("the store {} is open again", self.path.display());
        }
        Ok(())
    }

    fn run<T>(
        &self,
        what: &str,
        database: &Database,
        work: impl FnOnce(&Database) -> Result<T, StorageError>,
    ) -> Result<T, StoreError> {
        match caught(|| work(database)) {
            Ok(result) => result.map_err(|error| self.failed(what, &error)),
            Err(panic) => Err(StoreError::new(
                StoreErrorKind::Damaged,
                format!("{what} the store {}: the database panicked: {panic}", self.path.display()),
            )),
        }
    }

    fn failed(&self, what: &str, error: &StorageError) -> StoreError {
        of_storage(what, &self.path.display(), error)
    }
}

/// The file for the database. Where it is damaged, the database may ask for any number of bytes: a
/// read past the end fails before there is memory for it.
#[derive(Debug)]
pub(crate) struct CheckedFile(pub(crate) FileBackend);

impl StorageBackend for CheckedFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let (end, length) = (offset.saturating_add(len as u64), self.0.len()?);
        if end > length {
            let text = format!("it ends at byte {length}, before a page that ends at byte {end}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.0.read(offset, len)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.0.sync_data(eventual)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

fn attempt(path: &Path, open: &Open) -> Result<Database, StoreError> {
    match caught(|| open_or_create(path, open)) {
        Ok(opened) => opened.map_err(|error| of_opening(path, &error)),
        Err(panic) => Err(StoreError::new(
            StoreErrorKind::Damaged,
            format!("the store {} is damaged: restore it from a backup ({panic})", path.display()),
        )),
    }
}

fn open_or_create(path: &Path, open: &Open) -> Result<Database, DatabaseError> {
    if path.exists() { open_existing(path, open) } else { create(path, open) }
}

fn open_existing(path: &Path, open: &Open) -> Result<Database, DatabaseError> {
    let file = writable(path, false)?;
    let backend = FileBackend::new(file.try_clone()?)?;
    check_length(&file)?;
    open(backend)
}

/// The length of the database's header.
const HEADER_BYTES: usize = 320;

/// Refuses a file that is shorter than its header says: the database would panic.
fn check_length(file: &File) -> Result<(), DatabaseError> {
    let bytes = file.metadata()?.len();
    let mut header = Vec::with_capacity(HEADER_BYTES);
    // The handle shares its position with the backend's, which reads at offsets.
    file.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    let Some(expected) = length(&header) else { return Ok(()) };
    if bytes >= expected {
        return Ok(());
    }
    let text = format!("it ends at byte {bytes} of {expected}");
    Err(StorageError::Corrupted(text).into())
}

/// The least length of a database with this header, which begins with a magic number of nine bytes,
/// flags, and the layout: see "File format" in the database's design document. `None` if it is
/// none, which the database finds out itself. It would take an empty file for a new one, but a
/// store is whole before it has its name.
fn length(header: &[u8]) -> Option<u64> {
    if !header.is_empty() && !header.starts_with(b"redb\x1a\x0a\xa9\x0d\x0a") {
        return None;
    }
    if header.len() < HEADER_BYTES {
        return Some(HEADER_BYTES as u64);
    }
    let number = |at: usize| Some(u64::from(u32::from_le_bytes(*header[at..].first_chunk()?)));
    let (page, header_pages, region_pages) = (number(12)?, number(16)?, number(20)?);
    let (full_regions, last_pages) = (number(24)?, number(28)?);
    let full = full_regions.checked_mul(header_pages + region_pages)?;
    let last = if last_pages == 0 { 0 } else { header_pages + last_pages };
    // The header takes a page.
    full.checked_add(last + 1)?.checked_mul(page)
}

/// Creates the file under another name, and renames it once it is whole: a process that is killed
/// before then leaves no file with the store's name.
pub(crate) fn create(path: &Path, open: &Open) -> Result<Database, DatabaseError> {
    let new = beside(path);
    let file = writable(&new, true)?;
    // From here on, other processes that create the store are refused. The lock belongs to the
    // file, so it is kept when the file is renamed.
    let backend = FileBackend::new(file.try_clone()?)?;
    if path.exists() {
        // Another process was faster. Whatever has the other name now, no one needs it.
        let _ = fs::remove_file(&new);
        drop(backend);
        return open_existing(path, open);
    }
    // A killed process may have left something in it.
    file.set_len(0)?;
    let database = open(backend)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder(path)?;
    Ok(database)
}

/// The name of a file until it is whole.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn writable(path: &Path, create: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path)
}

/// Makes the name of a new file durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}
