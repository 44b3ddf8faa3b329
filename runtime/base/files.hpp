#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/interrupt.hpp"

namespace cudp {

/// Writes `content` to `path` atomically and durably: after a crash at any moment the file is the
/// old one or the new one, complete (temporary file, fsync, rename, fsync of the folder). Several
/// processes and threads may write the same file at the same time; the last one's content stays.
/// mode: permissions; 0600 for a file that only the owner may read. Throws Error, with the system's
/// reason, if the file cannot be written.
void write_atomically(const std::filesystem::path& path, std::string_view content,
                      unsigned mode = 0644);

/// A file that is written in parts, to a temporary file. It appears at its path complete, when
/// publish() is called, or not at all.
class StagedFile {
 public:
  /// Creates the temporary file into which the content is written. path: path of the complete file.
  /// mode: its permissions. Throws Error, with the system's reason, if the temporary file cannot be
  /// created.
  explicit StagedFile(std::filesystem::path path, unsigned mode = 0644);
  ~StagedFile();  ///< Removes the temporary file, unless publish() was called.
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  void write(std::string_view content);
  /// Writes the file to disk and moves it to its path, where it replaces an existing file.
  void publish();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::optional<UnfinishedFile> unfinished_;
  int file_ = -1;
};

/// Replaces a file's content, or creates the file, without waiting for the disk. The file at `path`
/// is always complete, but after a crash of the machine it may be the old one. For files that can
/// be computed again.
void replace_file(const std::filesystem::path& path, std::string_view content,
                  unsigned mode = 0644);

/// Returns whether `name` is that of a temporary file into which the content of the file `of` is
/// written: `.OF.new`, or `.OF.new-` and digits and hyphens. A process that is killed leaves such
/// files. of: name of the complete file; "" for any file.
bool is_unfinished(std::string_view name, std::string_view of = "");

/// Whether a function that writes a file returns only when the file is on disk (yes), or earlier
/// (no). A file that is not synced survives the end of the process, but after a crash of the
/// machine it may be lost, damaged or the old one.
enum class Sync { no, yes };

/// Writes a file: by write_atomically(), which syncs it to disk, or by replace_file(), which does
/// not.
void write_file(const std::filesystem::path& path, std::string_view content, unsigned mode,
                Sync sync);

/// Returns the content of a file. Throws Error, with the system's reason, if the file cannot be
/// read.
std::string read_file(const std::filesystem::path& path);

/// Returns the content of a file whose path the user gave. Throws InputError, with the system's
/// reason, if the file cannot be read.
std::string read_user_file(const std::filesystem::path& path);

/// Appends a line to a text file. Creates the file, readable by its owner only, if it does not
/// exist.
void append_line(const std::filesystem::path& path, std::string_view line);

/// Makes a file readable and writable by its owner only, whatever the umask. If there is no such
/// file, creates an empty one. An existing file keeps its content.
void make_private(const std::filesystem::path& path);

/// Writes a folder's list of files to disk (fsync of the folder), so that a file created in it is
/// still there after a crash.
void sync_folder(const std::filesystem::path& folder);

/// Removes the temporary files (is_unfinished()) of a folder that a killed process has left, but
/// not those of its subfolders. Call it only while no other process writes files of the folder. The
/// content of a file whose name contains "key" is overwritten with zeros first. Throws Error if a
/// file cannot be removed.
void remove_unfinished_files(const std::filesystem::path& folder);

/// Writes all files of a folder and its list of files to disk, but not its subfolders.
void sync_files(const std::filesystem::path& folder);
/// Writes these files of a folder, and its list of files, to disk.
void sync_files(const std::filesystem::path& folder, std::span<const std::filesystem::path> files);

/// Overwrites the content of an existing file with zeros and writes it to disk.
void overwrite_with_zeros(const std::filesystem::path& path);

/// Returns the CRC-64/XZ of `content`. It detects damage, not forgery.
std::uint64_t checksum(std::string_view content);

/// Lock on a folder while the object exists, so that no two processes resume the same run.
class FolderLock {
 public:
  /// Locks the folder. Throws Error if another process has locked it.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FolderLock& operator=(FolderLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

}  // namespace cudp
