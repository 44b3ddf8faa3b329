#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/interrupt.hpp"

namespace cudp {

/// Puts `content` at `path` so that after a crash at any moment the old file is there, or the new
/// one, whole: temporary file, fsync, rename, fsync of the folder. Throws Error with the system's
/// reason. mode: permissions, 0600 for what only the owner may read.
void write_atomically(const std::filesystem::path& path, std::string_view content,
                      unsigned mode = 0644);

/// A file that is written part by part and appears whole, or not at all.
class StagedFile {
 public:
  /// mode: permissions. Throws Error with the system's reason.
  explicit StagedFile(std::filesystem::path path, unsigned mode = 0644);
  ~StagedFile();  ///< removes what was not published
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  void write(std::string_view content);
  /// Makes it durable and moves it to its place, replacing what is there.
  void publish();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::optional<Unfinished> unfinished_;
  int file_ = -1;
};

/// Replaces a file without waiting for the disk: whole or not at all, but possibly the old one
/// after a crash of the machine. This is for what can be made again.
void replace_file(const std::filesystem::path& path, std::string_view content,
                  unsigned mode = 0644);

/// The whole file. Throws Error with the system's reason.
std::string read_file(const std::filesystem::path& path);

/// The whole of a file that the user named. Throws InputError with the system's reason.
std::string read_user_file(const std::filesystem::path& path);

/// Adds a line to a text file that only its owner may read, made if need be.
void append_line(const std::filesystem::path& path, std::string_view line);

/// Makes a file that only its owner may read, whatever the umask; one that is there keeps its
/// content.
void make_private(const std::filesystem::path& path);

/// Makes the entries of a folder durable.
void sync_folder(const std::filesystem::path& folder);

/// Writes zeros over all of a file that is there, durably.
void overwrite_with_zeros(const std::filesystem::path& path);

/// CRC-64/XZ: finds damage, not forgery.
std::uint64_t checksum(std::string_view content);

/// Holds a lock on a folder while it lives, so that two processes cannot continue one run.
class FolderLock {
 public:
  /// Throws Error if another process holds it.
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
