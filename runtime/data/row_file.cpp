#include "runtime/data/row_file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/base/available_memory.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/bytes.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

std::string reason(int error) { return std::generic_category().message(error); }

std::string path_of_descriptor(int number) { return "/proc/self/fd/" + std::to_string(number); }

/// Point in copy_mapped() at which this thread continues if a mapped page that it copies is no
/// longer in its file. Null if this thread is not in copy_mapped().
thread_local sigjmp_buf* after_lost_page = nullptr;
struct sigaction earlier_action {};

/// Handles the signal SIGBUS, which the system sends to a thread that reads a mapped page beyond
/// the end of its file. If the thread is in copy_mapped(), continues there, and copy_mapped()
/// returns false. Otherwise passes the signal to the handler that was installed before; if there
/// was none, the signal ends the process. signal, info, context: as for sigaction().
void on_lost_page(int signal, siginfo_t* info, void* context) {
  if (after_lost_page != nullptr) siglongjmp(*after_lost_page, 1);
  if ((earlier_action.sa_flags & SA_SIGINFO) != 0 && earlier_action.sa_sigaction != nullptr) {
    earlier_action.sa_sigaction(signal, info, context);
  } else if (earlier_action.sa_handler != SIG_DFL && earlier_action.sa_handler != SIG_IGN) {
    earlier_action.sa_handler(signal);
  } else {
    ::signal(SIGBUS, SIG_DFL);
    ::raise(SIGBUS);
  }
}

void handle_lost_pages() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_lost_page;
    // SIGBUS must not stay blocked, because the handler does not return.
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &earlier_action);
  });
}

/// Copies the rows with the indices `rows` out of mapped memory to `to`, one after the other. from:
/// address of row 0. row_bytes: size of a row. Returns false if a page was no longer in the file.
bool copy_mapped(const std::uint8_t* from, std::size_t row_bytes,
                 std::span<const std::uint32_t> rows, std::uint8_t* to) {
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    after_lost_page = nullptr;
    return false;
  }
  after_lost_page = &here;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    constexpr std::size_t kAhead = 4;  // rows lie anywhere, so the hardware cannot predict them
    if (i + kAhead < rows.size()) __builtin_prefetch(from + rows[i + kAhead] * row_bytes);
    std::memcpy(to + i * row_bytes, from + rows[i] * row_bytes, row_bytes);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  after_lost_page = nullptr;
  return true;
}

/// Reads bytes at an offset in a file. Returns 0 on success, -1 if the file ends too early, and
/// otherwise the error number (errno) of the system.
int read_at(int file, std::uint64_t at, std::size_t bytes, std::uint8_t* to) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(file, to + done, bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return -1;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

FileDescriptor unnamed_file(const fs::path& folder, const std::string& data, bool* can_be_named) {
  const int unnamed = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (can_be_named != nullptr) *can_be_named = unnamed >= 0;
  if (unnamed >= 0) return FileDescriptor(unnamed);
  std::string path = (folder / ".cudp-rows-XXXXXX").string();
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0)
    throw Error(data + ": its rows need a file in " + folder.string() +
                ", which cannot be made: " + reason(errno));
  ::unlink(path.c_str());
  return FileDescriptor(file);
}

RowFile::RowFile(std::string name, FileDescriptor file, std::uint64_t first_byte,
                 std::size_t row_bytes, std::size_t rows, bool is_unnamed,
                 fs::path folder_for_copies)
    : name_(std::move(name)),
      file_(std::move(file)),
      first_byte_(first_byte),
      row_bytes_(row_bytes),
      rows_(rows),
      is_unnamed_(is_unnamed),
      folder_for_copies_(std::move(folder_for_copies)) {
  const std::uint64_t end = first_byte + std::uint64_t{row_bytes} * rows;
  if (!has_all_rows()) refuse();
  if (end == 0) return;
  handle_lost_pages();
  void* const mapped = ::mmap(nullptr, end, PROT_READ, MAP_SHARED, file_.number(), 0);
  if (mapped == MAP_FAILED) throw Error(name_ + ": cannot be mapped: " + reason(errno));
  mapped_ = mapped;
  mapped_bytes_ = end;
  stays_in_memory_ = end < available_memory();
  // Batches are drawn at random, so their rows are far apart. Without MADV_RANDOM the system would
  // also read the pages around each row, and so the whole file.
  ::madvise(mapped_, mapped_bytes_, MADV_RANDOM);
}

RowFile::~RowFile() {
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
}

bool RowFile::has_all_rows() const {
  struct stat about {};
  return ::fstat(file_.number(), &about) == 0 &&
         static_cast<std::uint64_t>(about.st_size) >=
             first_byte_ + std::uint64_t{row_bytes_} * rows_;
}

FileDescriptor RowFile::open_again(int flags) const {
  return FileDescriptor(
      ::open(path_of_descriptor(file_.number()).c_str(), O_RDONLY | O_CLOEXEC | flags));
}

bool RowFile::link_to(const fs::path& path) const {
  if (!is_unnamed_) return false;
  const std::string file = path_of_descriptor(file_.number());
  return ::linkat(AT_FDCWD, file.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

void RowFile::refuse() const {
  throw InputError(name_ +
                   ": expected the rows that it had when it was opened, found a file that was cut "
                   "short or cannot be read");
}

void RowFile::copy(std::span<const std::uint32_t> rows, std::uint8_t* to) const {
  if (rows.empty()) return;
  ensure(*std::ranges::max_element(rows) < rows_, "a row that the file does not have");
  const auto* const first = static_cast<const std::uint8_t*>(mapped_) + first_byte_;
  // If the file was cut short, the rest of its last page reads as zeros, without an error. So its
  // size is checked after the copy.
  if (!copy_mapped(first, row_bytes_, rows, to) || !has_all_rows()) refuse();
}

void RowFile::copy(std::size_t first, std::size_t count, std::uint8_t* to) const {
  ensure(first <= rows_ && count <= rows_ - first, "rows that the file does not have");
  if (read_at(file_.number(), first_byte_ + first * row_bytes_, count * row_bytes_, to) != 0)
    refuse();
}

void RowFile::read_ahead(std::span<const std::uint32_t> rows, std::size_t at,
                         std::size_t part) const {
  constexpr std::size_t kRows = 2048;  // number of rows that are requested in advance
  if (stays_in_memory_) return;
  const std::size_t begin = at == 0 ? 0 : std::min(at + kRows, rows.size());
  request(rows.subspan(begin, std::min(at + kRows + part, rows.size()) - begin));
}

void RowFile::request(std::span<const std::uint32_t> rows) const {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint64_t kGap = 8 * kPage;  // reading a gap is faster than a second request
  for (std::size_t i = 0; i < rows.size();) {
    const std::uint64_t begin = first_byte_ + rows[i] * row_bytes_;
    std::uint64_t end = begin + row_bytes_;
    for (++i; i < rows.size(); ++i) {
      const std::uint64_t next = first_byte_ + rows[i] * row_bytes_;
      if (next < begin || next > end + kGap) break;
      end = std::max(end, next + row_bytes_);
    }
    const std::uint64_t page = begin / kPage * kPage;
    ::madvise(static_cast<std::uint8_t*>(mapped_) + page, end - page, MADV_WILLNEED);
  }
}

std::shared_ptr<const RowFile> open_rows(const fs::path& path, std::uint64_t first_byte,
                                         std::size_t row_bytes, std::size_t rows,
                                         const fs::path& folder_for_copies) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) bad_input(path.string(), "", "a file that can be read", reason(errno));
  return std::make_shared<const RowFile>(path.string(), std::move(file), first_byte, row_bytes,
                                         rows, false, folder_for_copies);
}

std::shared_ptr<const RowFile> make_empty_rows(const fs::path& folder, const std::string& data,
                                               std::size_t row_bytes, std::size_t rows) {
  FileDescriptor file = unnamed_file(folder, data);
  const std::uint64_t bytes = std::uint64_t{row_bytes} * rows;
  struct statvfs disk {};
  if (::fstatvfs(file.number(), &disk) != 0 ||
      static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize / 2 < bytes ||
      ::fallocate(file.number(), 0, 0, static_cast<off_t>(bytes)) != 0)
    return nullptr;
  return std::make_shared<const RowFile>("file of copied rows of " + data, std::move(file), 0,
                                         row_bytes, rows);
}

RowFileWriter::RowFileWriter(const fs::path& folder, std::string data, std::size_t row_bytes)
    : folder_(folder),
      data_(std::move(data)),
      row_bytes_(row_bytes),
      file_(unnamed_file(folder, data_, &can_be_named_)) {}

void RowFileWriter::append(std::span<const std::uint8_t> rows) {
  ensure(rows.size() % row_bytes_ == 0, "a file of rows takes whole rows");
  for (std::size_t done = 0; done < rows.size();) {
    const ssize_t n = ::write(file_.number(), rows.data() + done, rows.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw Error(data_ + ": its rows cannot be written to a file in " + folder_.string() + ": " +
                  reason(n < 0 ? errno : ENOSPC));
    done += static_cast<std::size_t>(n);
  }
  bytes_ += rows.size();
}

std::shared_ptr<const RowFile> RowFileWriter::finish() {
  return std::make_shared<const RowFile>("file of the rows of " + data_, std::move(file_), 0,
                                         row_bytes_, bytes_ / row_bytes_, can_be_named_, folder_);
}

bool RowStorage::in_file(std::uint64_t bytes) const {
  if (where != RowsIn::automatic) return where == RowsIn::file;
  return bytes > available_memory() / 2;
}

}  // namespace cudp
