#include "runtime/base/files.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <future>
#include <new>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <lzma.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw Error(path.string() + ": cannot " + what + ": " + std::strerror(errno));
}

/// An open file, closed by the destructor.
class File {
 public:
  File(const std::filesystem::path& path, int flags, unsigned mode)
      : path_(path), file_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (file_ < 0) fail(path_, "open");
  }
  /// Takes over an open file.
  File(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}
  ~File() { ::close(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int get() const { return file_; }
  const std::filesystem::path& path() const { return path_; }
  void sync() const {
    if (::fsync(file_) != 0) fail(path_, "sync");
  }

 private:
  std::filesystem::path path_;
  int file_;
};

void write_all(int file, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(file, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "write");
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

/// Returns whether no byte of a file has been written to disk yet, i.e. the file system has not
/// assigned disk blocks to it. Returns false if the file system does not report this.
bool is_in_memory_only(int file) {
  // FS_IOC_FIEMAP writes the extents of the file to the memory after the struct `fiemap`. There is
  // space for one extent. A file with more extents is not reported as being in memory only, because
  // its first extent does not have the flag FIEMAP_EXTENT_LAST.
  alignas(fiemap) std::array<std::byte, sizeof(fiemap) + sizeof(fiemap_extent)> memory{};
  auto* const map = new (memory.data()) fiemap{};
  map->fm_length = FIEMAP_MAX_OFFSET;
  map->fm_extent_count = 1;
  if (::ioctl(file, FS_IOC_FIEMAP, map) != 0 || map->fm_mapped_extents != 1) return false;
  fiemap_extent extent{};
  std::memcpy(&extent, memory.data() + sizeof(fiemap), sizeof extent);
  constexpr unsigned kUnwritten = FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_LAST;
  return (extent.fe_flags & kUnwritten) == kUnwritten;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// Mark of temporary files: a file NAME is written as `.NAME.new`, or as `.NAME.new-NUMBERS`.
constexpr std::string_view kUnfinishedMark = ".new";

/// Creates the temporary file of `path`, open for writing, and returns it. If `.NAME.new` exists,
/// because another process or thread is writing the same file or was killed while it did, appends
/// the id of this process and a number to that name. (The number, because processes of several
/// machines may have the same id.)
File new_temporary_file(const std::filesystem::path& path, unsigned mode) {
  const std::filesystem::path first =
      folder_of(path) / std::string(".").append(path.filename().string()).append(kUnfinishedMark);
  std::filesystem::path name = first;
  for (int n = 1;; ++n) {
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0) return {name, file};
    const int reason = errno;
    constexpr int kTries = 10000;
    struct stat found {};
    const bool is_folder = ::lstat(name.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
    errno = reason;
    if (reason != EEXIST || is_folder || n == kTries) fail(name, "open");
    name = first.string() + "-" + std::to_string(::getpid()) + "-" + std::to_string(n);
  }
}

void write_and_rename(const std::filesystem::path& path, std::string_view content, unsigned mode,
                      bool sync) {
  const FilesInChange lock;
  const File file = new_temporary_file(path, mode);
  try {
    if (::fchmod(file.get(), mode) != 0) fail(file.path(), "set the permissions");
    write_all(file.get(), content, file.path());
    if (sync) file.sync();
    if (::rename(file.path().c_str(), path.c_str()) != 0) fail(path, "rename to it");
  } catch (const Error&) {
    ::unlink(file.path().c_str());
    throw;
  }
}

}  // namespace

void write_atomically(const std::filesystem::path& path, std::string_view content, unsigned mode) {
  write_and_rename(path, content, mode, true);
  sync_folder(folder_of(path));
}

StagedFile::StagedFile(std::filesystem::path path, unsigned mode) : path_(std::move(path)) {
  temporary_ = folder_of(path_) / std::string(".")
                                      .append(path_.filename().string())
                                      .append(".new-")
                                      .append(std::to_string(::getpid()));
  const FilesInChange lock;
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (file_ < 0) fail(path_, "write");
  unfinished_.emplace(temporary_);
  if (::fchmod(file_, mode) != 0) fail(path_, "set the permissions");
}

StagedFile::~StagedFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void StagedFile::write(std::string_view content) { write_all(file_, content, path_); }

void StagedFile::publish() {
  if (::fsync(file_) != 0) fail(path_, "sync");
  const FilesInChange lock;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "rename to it");
  temporary_.clear();
  unfinished_.reset();
  sync_folder(folder_of(path_));
}

void replace_file(const std::filesystem::path& path, std::string_view content, unsigned mode) {
  write_and_rename(path, content, mode, false);
}

bool is_unfinished(std::string_view name, std::string_view of) {
  const std::size_t mark = name.rfind(kUnfinishedMark);
  if (!name.starts_with('.') || mark == std::string_view::npos || mark < 2) return false;
  if (!of.empty() && name.substr(1, mark - 1) != of) return false;
  const std::string_view numbers = name.substr(mark + kUnfinishedMark.size());
  return numbers.empty() || (numbers.size() > 1 && numbers[0] == '-' &&
                             numbers.find_first_not_of("0123456789-") == std::string_view::npos);
}

void write_file(const std::filesystem::path& path, std::string_view content, unsigned mode,
                Sync sync) {
  sync == Sync::yes ? write_atomically(path, content, mode) : replace_file(path, content, mode);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  if (!in || (in.peek() != std::ifstream::traits_type::eof() && !(content << in.rdbuf())))
    fail(path, "read");
  return std::move(content).str();
}

std::string read_user_file(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path))
    throw InputError(path.string() + ": expected a file, found a directory");
  try {
    return read_file(path);
  } catch (const Error& e) {
    throw InputError(e.what());
  }
}

void append_line(const std::filesystem::path& path, std::string_view line) {
  const FilesInChange lock;
  const File file(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  write_all(file.get(), std::string(line) + "\n", path);
}

void make_private(const std::filesystem::path& path) {
  const File file(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (::fchmod(file.get(), 0600) != 0) fail(path, "set the permissions");
}

void sync_folder(const std::filesystem::path& folder) {
  const File f(folder, O_RDONLY | O_DIRECTORY, 0);
  f.sync();
}

void remove_unfinished_files(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (is_unfinished(entry.path().filename().string()) &&
        entry.symlink_status(error).type() == std::filesystem::file_type::regular)
      files.push_back(entry.path());
  for (const std::filesystem::path& file : files) {
    // It may be a part of a key.
    if (file.filename().string().find("key") != std::string::npos) overwrite_with_zeros(file);
    std::filesystem::remove(file, error);
    if (error) throw Error(file.string() + ": cannot remove it: " + error.message());
  }
}

void sync_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  sync_files(folder, files);
}

void sync_files(const std::filesystem::path& folder, std::span<const std::filesystem::path> files) {
  // Each file is synced by a thread of its own, because the file system combines syncs that are
  // requested at the same time. Measured on a virtual disk: eight files take 32 to 52 ms one after
  // another, and 3 to 14 ms together.
  std::vector<std::future<void>> all;
  all.reserve(files.size() + 1);
  // The lambdas capture `file` by reference. If no thread can be made, std::async runs a function
  // object later from which it has already moved; a captured path would then be empty.
  for (const std::filesystem::path& file : files)
    all.push_back(std::async([&file] { File(file, O_RDONLY, 0).sync(); }));
  all.push_back(std::async([&] { sync_folder(folder); }));
  for (std::future<void>& one : all) one.get();
}

void overwrite_with_zeros(const std::filesystem::path& path) {
  const File file(path, O_WRONLY, 0);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) fail(path, "look at");
  write_all(file.get(), std::string(static_cast<std::size_t>(about.st_size), '\0'), path);
  if (!is_in_memory_only(file.get())) file.sync();
}

std::uint64_t checksum(std::string_view content) {
  return ::lzma_crc64(reinterpret_cast<const std::uint8_t*>(content.data()), content.size(), 0);
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : file_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (file_ < 0) fail(folder, "open");
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(file_);
  throw Error(folder.string() + ": another process is using this run");
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace cudp
