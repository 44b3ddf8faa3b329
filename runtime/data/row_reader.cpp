#include "runtime/data/row_reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"

namespace cudp {
namespace {

constexpr std::uint64_t kDirectPage = 4096;

/// Minimum number of reads that are under way at a time.
constexpr std::size_t kMinReads = 4;

/// Returns whether io_submit() reads this file in the background, i.e. returns before the data are
/// read. On some file systems it reads the pages one after another before it returns.
bool reads_in_background(int file) {
  constexpr long kXfs = 0x58465342;
  struct statfs about {};
  if (::fstatfs(file, &about) != 0) return false;
  return about.f_type == EXT4_SUPER_MAGIC || about.f_type == kXfs;
}

}  // namespace

std::unique_ptr<RowReader> RowReader::open(const RowFile& file, std::size_t piece_bytes) {
  FileDescriptor direct = file.open_again(O_DIRECT);
  if (direct.number() < 0 || !reads_in_background(direct.number())) return nullptr;
  const std::size_t slot_bytes =
      std::max<std::size_t>(piece_bytes, (file.row_bytes() / kDirectPage + 2) * kDirectPage);
  const std::size_t reads = std::clamp(kMaxBytes / slot_bytes, kMinReads, kMaxReads);
  aio_context_t context = 0;
  if (::syscall(SYS_io_setup, reads, &context) != 0) return nullptr;
  return std::unique_ptr<RowReader>(
      new RowReader(file, std::move(direct), context, slot_bytes, reads));
}

RowReader::RowReader(const RowFile& file, FileDescriptor direct, std::uint64_t context,
                     std::size_t slot_bytes, std::size_t reads)
    : file_(file),
      direct_(std::move(direct)),
      context_(context),
      slot_bytes_(slot_bytes),
      memory_(static_cast<std::uint8_t*>(std::aligned_alloc(kDirectPage, reads * slot_bytes)),
              &std::free),
      reads_(reads),
      idle_(reads) {
  ensure(memory_ != nullptr, "memory for reads of rows");
  std::iota(idle_.begin(), idle_.end(), std::size_t{0});
  const BlockedSignals blocked;  // other threads handle signals
  thread_ = std::thread([this] { work(); });
}

RowReader::~RowReader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ::syscall(SYS_io_destroy, context_);
}

void RowReader::start(List& list) {
  ensure(list.done, "the list is being read");
  list.begun = list.ended = 0;
  list.failed = false;
  if (list.rows.empty()) return;
  ensure(list.rows.back() < file_.rows(), "a row that the file does not have");
  {
    const std::lock_guard lock(mutex_);
    list.done = false;
    lists_.push_back(&list);
  }
  changed_.notify_all();
}

void RowReader::wait(const List& list) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return list.done; });
  }
  // If the file was cut short, the rest of its last page may read as zeros, without an error. So
  // its size is checked after the reads.
  if (list.failed || (!list.rows.empty() && !file_.has_all_rows())) file_.refuse();
}

void RowReader::work() {
  for (;;) {
    std::vector<std::size_t> slots;
    {
      std::unique_lock lock(mutex_);
      if (under_way() == 0) changed_.wait(lock, [this] { return stop_ || !lists_.empty(); });
      if (stop_ && under_way() == 0) return;
      if (!stop_) slots = next_reads();
    }
    submit(slots);
    collect();
  }
}

std::vector<std::size_t> RowReader::next_reads() {
  std::vector<std::size_t> slots;
  const std::size_t row_bytes = file_.row_bytes();
  while (!lists_.empty() && !idle_.empty()) {
    List& list = *lists_.front();
    const std::size_t slot = idle_.back();
    idle_.pop_back();
    slots.push_back(slot);
    Read& read = reads_[slot];
    read = {.list = &list, .first = list.begun, .count = 0, .page = 0};
    read.page = file_.offset(list.rows[read.first]) / kDirectPage * kDirectPage;
    const auto fits = [&](std::size_t i) {
      return i < list.rows.size() && list.rows[i] >= list.rows[read.first] &&
             file_.offset(list.rows[i]) + row_bytes <= read.page + slot_bytes_;
    };
    while (fits(read.first + read.count)) ++read.count;
    list.begun += read.count;
    if (list.begun == list.rows.size()) lists_.pop_front();
  }
  return slots;
}

void RowReader::submit(std::span<const std::size_t> slots) {
  std::array<iocb, kMaxReads> requests{};
  std::array<iocb*, kMaxReads> next{};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Read& read = reads_[slots[i]];
    const std::uint64_t end =
        file_.offset(read.list->rows[read.first + read.count - 1]) + file_.row_bytes();
    iocb& request = requests[i];
    request.aio_fildes = static_cast<std::uint32_t>(direct_.number());
    request.aio_lio_opcode = IOCB_CMD_PREAD;
    request.aio_buf = reinterpret_cast<std::uint64_t>(memory_.get() + slots[i] * slot_bytes_);
    request.aio_nbytes = (end - read.page + kDirectPage - 1) / kDirectPage * kDirectPage;
    request.aio_offset = static_cast<std::int64_t>(read.page);
    request.aio_data = slots[i];
    next[i] = &request;
  }
  for (std::size_t done = 0; done < slots.size();) {
    const long n = ::syscall(SYS_io_submit, context_, slots.size() - done, next.data() + done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n < 0 && errno == EAGAIN) {
      std::this_thread::yield();  // the system is short of memory for requests
    } else if (n == 0 || errno != EINTR) {
      finish(slots[done++], -1);
    }
  }
}

void RowReader::collect() {
  if (under_way() == 0) return;
  std::array<io_event, kMaxReads> events{};
  const std::size_t awaited = std::min(under_way(), reads_.size() / 8 + 1);
  const long n =
      ::syscall(SYS_io_getevents, context_, awaited, events.size(), events.data(), nullptr);
  for (long i = 0; i < n; ++i) {
    const io_event& event = events[static_cast<std::size_t>(i)];
    finish(event.data, event.res);
  }
}

void RowReader::finish(std::size_t slot, std::int64_t result) {
  const Read& read = reads_[slot];
  List& list = *read.list;
  const std::size_t row_bytes = file_.row_bytes();
  for (std::size_t i = read.first; i < read.first + read.count; ++i) {
    const std::uint64_t at = file_.offset(list.rows[i]) - read.page;
    if (result < 0 || at + row_bytes > static_cast<std::uint64_t>(result)) {
      list.failed = true;
      break;
    }
    std::memcpy(list.to + i * row_bytes, memory_.get() + slot * slot_bytes_ + at, row_bytes);
  }
  idle_.push_back(slot);
  list.ended += read.count;
  if (list.ended < list.rows.size()) return;
  {
    const std::lock_guard lock(mutex_);
    list.done = true;
  }
  changed_.notify_all();
}

}  // namespace cudp
