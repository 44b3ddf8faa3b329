#include "runtime/data/row_pass.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

constexpr std::size_t kPage = RowPass::kDirectPage;

/// Number of blocks of the file that are read at the same time.
constexpr std::size_t kBlocks = 8;
/// Number of blocks whose rows are passed to RowPass::use at the same time, by several threads, if
/// RowPass::use is set. The other blocks are read meanwhile.
constexpr std::size_t kUsedBlocks = kBlocks / 2;

static_assert(kBlocks * (RowPass::kBlockBytes + 2 * kPage) <= RowPass::kReadBytes);
static_assert(RowPass::kMaxRowBytes <= RowPass::kBlockBytes);

constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

/// State of copy_in_one_pass(): reads the blocks of the file in order, and writes collected rows.
/// Reads and writes are in progress while rows are copied in memory.
class Pass {
 public:
  explicit Pass(const RowPass& pass)
      : pass_(pass),
        row_bytes_(pass.from.row_bytes()),
        block_rows_(RowPass::kBlockBytes / row_bytes_ / multiple() * multiple()),
        block_bytes_(RowPass::kBlockBytes + 2 * kPage),
        from_(pass.from.open_again(O_DIRECT)),
        to_(pass.to.open_again(O_DIRECT | O_WRONLY)),
        lists_(pass.lists.size()),
        sizes_(pass.lists.size() + RowPass::kWrites),
        memory_(static_cast<std::uint8_t*>(std::aligned_alloc(
                    kPage, kBlocks * block_bytes_ + sizes_.size() * pass.chunk_bytes)),
                &std::free),
        idle_(RowPass::kWrites) {
    ensure(memory_ != nullptr, "memory for a pass over a file");
    ensure(pass.use == nullptr || pass.team != nullptr, "threads that use the rows");
    ensure(pass.to.row_bytes() == row_bytes_ && row_bytes_ <= RowPass::kMaxRowBytes &&
               pass.slot_rows * row_bytes_ % kPage == 0 && pass.to.offset(0) % kPage == 0 &&
               pass.chunk_bytes > 0 && pass.chunk_bytes % kPage == 0 &&
               pass.lists.size() * pass.slot_rows <= pass.to.rows(),
           "a pass that fits its files");
    for (std::size_t k = 0; k < lists_.size(); ++k) lists_[k].buffer = k;
    std::iota(idle_.begin(), idle_.end(), lists_.size());
  }
  ~Pass() {
    while (in_progress_ > 0) collect();  // reads and writes use memory_
    if (context_ != 0) ::syscall(SYS_io_destroy, context_);
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  Pass(Pass&&) = delete;
  Pass& operator=(Pass&&) = delete;

  bool run(const std::atomic<bool>& stop) {
    if (from_.number() < 0 || to_.number() < 0 || block_rows_ == 0) return false;
    if (::syscall(SYS_io_setup, kBlocks + RowPass::kWrites + 1, &context_) != 0) return false;
    const std::size_t blocks = (pass_.from.rows() + block_rows_ - 1) / block_rows_;
    for (std::size_t b = 0; b < std::min(kBlocks, blocks); ++b) read(b);
    const std::size_t together = pass_.use != nullptr ? kUsedBlocks : 1;
    for (std::size_t b = 0; b < blocks; b += together) {
      const std::size_t end = std::min(b + together, blocks);
      for (std::size_t k = b; k < end; ++k)
        while (!failed_ && !is_read_[k % kBlocks]) collect();
      if (failed_ || stop) return false;
      use_rows(b, end);
      for (std::size_t k = b + kBlocks; k < std::min(end + kBlocks, blocks); ++k) read(k);
    }
    for (std::size_t k = 0; k < lists_.size(); ++k)
      if (lists_[k].collected > 0) write(k);
    while (in_progress_ > 0) collect();
    // If the file was cut short, the rest of its last page may read as zeros, without an error. So
    // its size is checked after the last read.
    return !failed_ && pass_.from.has_all_rows();
  }

 private:
  std::size_t multiple() const { return pass_.use != nullptr ? pass_.use->multiple : 1; }

  /// Progress of copying one list of rows: the next row to copy, and the rows that are collected in
  /// memory but not yet written.
  struct List {
    std::size_t next = 0;       ///< index in the list of the next row
    std::size_t buffer = 0;     ///< index of the memory in which its rows are collected
    std::size_t collected = 0;  ///< bytes in this memory
    std::size_t written = 0;    ///< bytes of the list that were written, or are being written
  };

  std::size_t end_of(std::size_t block) const {
    return std::min((block + 1) * block_rows_, pass_.from.rows());
  }
  /// Returns the offset in the file from which a block is read: the offset of the first row of the
  /// block, rounded down to a whole page.
  std::uint64_t page_of(std::size_t block) const {
    return pass_.from.offset(block * block_rows_) / kPage * kPage;
  }
  std::uint8_t* block_memory(std::size_t block) const {
    return memory_.get() + block % kBlocks * block_bytes_;
  }
  std::uint8_t* buffer_memory(std::size_t buffer) const {
    return memory_.get() + kBlocks * block_bytes_ + buffer * pass_.chunk_bytes;
  }

  void read(std::size_t block) {
    const std::size_t slot = block % kBlocks;
    is_read_[slot] = false;
    needed_[slot] = pass_.from.offset(end_of(block)) - page_of(block);
    iocb request{};
    request.aio_data = slot;
    request.aio_lio_opcode = IOCB_CMD_PREAD;
    request.aio_fildes = static_cast<std::uint32_t>(from_.number());
    request.aio_buf = reinterpret_cast<std::uint64_t>(block_memory(block));
    request.aio_nbytes = whole_pages(needed_[slot]);
    request.aio_offset = static_cast<std::int64_t>(page_of(block));
    submit(request);
  }

  /// Writes the rows collected for list k to the file, and gives the list an unused buffer for its
  /// next rows.
  void write(std::size_t k) {
    List& list = lists_[k];
    sizes_[list.buffer] = whole_pages(list.collected);
    iocb request{};
    request.aio_data = kBlocks + list.buffer;
    request.aio_lio_opcode = IOCB_CMD_PWRITE;
    request.aio_fildes = static_cast<std::uint32_t>(to_.number());
    request.aio_buf = reinterpret_cast<std::uint64_t>(buffer_memory(list.buffer));
    request.aio_nbytes = sizes_[list.buffer];
    request.aio_offset =
        static_cast<std::int64_t>(pass_.to.offset(k * pass_.slot_rows) + list.written);
    submit(request);
    list.written += list.collected;
    list.collected = 0;
    while (!failed_ && idle_.empty()) collect();
    if (failed_) return;
    list.buffer = idle_.back();
    idle_.pop_back();
  }

  void submit(iocb& request) {
    iocb* one = &request;
    while (!failed_) {
      const long n = ::syscall(SYS_io_submit, context_, 1L, &one);
      if (n == 1) {
        ++in_progress_;
        return;
      }
      if (n < 0 && errno == EAGAIN) {
        std::this_thread::yield();  // the system is short of memory for requests
      } else if (n == 0 || errno != EINTR) {
        failed_ = true;
      }
    }
  }

  /// Waits until at least one read or write has finished. For each that has, records whether it
  /// succeeded, and marks its buffer as unused.
  void collect() {
    std::array<io_event, kBlocks + RowPass::kWrites + 1> events{};
    const long n = ::syscall(SYS_io_getevents, context_, 1L, events.size(), events.data(), nullptr);
    for (long i = 0; i < n; ++i) {
      const io_event& event = events[static_cast<std::size_t>(i)];
      const auto bytes = static_cast<std::int64_t>(event.res);
      if (event.data < kBlocks) {
        is_read_[event.data] = true;
        failed_ = failed_ || bytes < static_cast<std::int64_t>(needed_[event.data]);
      } else {
        const std::size_t buffer = event.data - kBlocks;
        failed_ = failed_ || bytes != static_cast<std::int64_t>(sizes_[buffer]);
        idle_.push_back(buffer);
      }
      --in_progress_;
    }
  }

  /// Copies the rows of all lists that are in blocks begin <= b < end. Requires that these blocks
  /// have been read. If pass.use is set, one thread copies, while other threads call pass.use with
  /// the rows of each block.
  void use_rows(std::size_t begin, std::size_t end) {
    const auto copy_all = [&] {
      for (std::size_t b = begin; b < end; ++b) copy_rows(b);
    };
    if (pass_.use == nullptr) return copy_all();
    pass_.team->run(end - begin + 1, [&](std::size_t task, int) {
      if (task == 0) return copy_all();
      const std::size_t b = begin + task - 1;
      const std::size_t first = b * block_rows_;
      pass_.use->use(first, {block_memory(b) + (pass_.from.offset(first) - page_of(b)),
                             (end_of(b) - first) * row_bytes_});
    });
  }

  /// Copies the rows of a block that has been read to the buffers of the lists that contain them.
  void copy_rows(std::size_t block) {
    const std::uint8_t* const memory = block_memory(block);
    const std::size_t end = end_of(block);
    for (std::size_t k = 0; k < lists_.size(); ++k) {
      const std::vector<std::uint32_t>& rows = pass_.lists[k];
      if (rows.size() > pass_.slot_rows) continue;
      for (List& list = lists_[k]; list.next < rows.size() && rows[list.next] < end; ++list.next)
        collect_row(k, memory + (pass_.from.offset(rows[list.next]) - page_of(block)));
    }
  }

  void collect_row(std::size_t k, const std::uint8_t* row) {
    List& list = lists_[k];
    for (std::size_t left = row_bytes_; left > 0 && !failed_;) {
      const std::size_t n = std::min(left, pass_.chunk_bytes - list.collected);
      std::memcpy(buffer_memory(list.buffer) + list.collected, row, n);
      list.collected += n;
      row += n;
      left -= n;
      if (list.collected == pass_.chunk_bytes) write(k);
    }
  }

  const RowPass& pass_;
  std::size_t row_bytes_;
  std::size_t block_rows_;   ///< number of rows that are read at a time
  std::size_t block_bytes_;  ///< memory for them, and for the rest of their first and last page
  FileDescriptor from_;
  FileDescriptor to_;
  aio_context_t context_ = 0;
  std::vector<List> lists_;
  std::vector<std::size_t> sizes_;  ///< size of the write from each buffer [bytes]
  std::unique_ptr<std::uint8_t, void (*)(void*)> memory_;  ///< blocks, then buffers
  std::vector<std::size_t> idle_;  ///< buffers that no list and no write uses
  std::array<bool, kBlocks> is_read_{};
  std::array<std::size_t, kBlocks> needed_{};  ///< number of bytes of a block up to its last row
  std::size_t in_progress_ = 0;                ///< number of reads and writes
  bool failed_ = false;
};

}  // namespace

std::size_t RowPass::slot_of(std::size_t rows, std::size_t row_bytes) {
  const std::size_t step = kDirectPage / std::gcd(kDirectPage, row_bytes);
  return (rows + step - 1) / step * step;
}

bool copy_in_one_pass(const RowPass& pass, const std::atomic<bool>& stop) {
  return Pass(pass).run(stop);
}

}  // namespace cudp
