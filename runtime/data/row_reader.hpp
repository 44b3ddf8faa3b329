#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "runtime/data/row_file.hpp"

namespace cudp {

/// Reads rows of a file that is larger than memory while the caller does other work. Its thread has
/// many reads in progress at a time, and bypasses the system's page cache, because pages of drawn
/// rows are not used again soon, and putting a page into the cache costs several times the CPU time
/// of reading it.
class RowReader {
 public:
  /// Size of the memory for all reads in progress [bytes]. If a row is larger than a quarter of
  /// this, more memory is used.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  /// A request to read rows: the indices of the rows, and the address to which the rows are copied.
  /// The object must not be moved or destroyed between start() and the return of wait().
  struct List {
    std::span<const std::uint32_t> rows;  ///< ascending; must stay valid until wait() returns
    std::uint8_t* to = nullptr;           ///< [rows.size(), row_bytes()]
    bool done = true;

    // Used by the reader's thread only, from start() until `done` is true.
    std::size_t begun = 0;  ///< number of rows whose reads were requested
    std::size_t ended = 0;
    bool failed = false;
  };

  /// Size of a piece, the part of the file that a single read covers [bytes]. Rows whose pages lie
  /// within one piece are read together, because a disk takes about as long for a piece as for one
  /// page. A row that is longer than a piece has a read of its own.
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 14;

  /// Returns a reader of `file`, which must outlive the reader; null if the disk, its file system
  /// or the operating system does not support such reads (asynchronous, without cache).
  /// piece_bytes: size of a piece, a multiple of the page size; larger ones are faster if lists
  /// consist of consecutive rows.
  static std::unique_ptr<RowReader> open(const RowFile& file,
                                         std::size_t piece_bytes = kPieceBytes);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;
  RowReader(RowReader&&) = delete;
  RowReader& operator=(RowReader&&) = delete;

  /// Starts to read the rows of `list`, and returns at once. Requires that an earlier read of the
  /// same list is done. Lists are read in the order in which they are started.
  void start(List& list);
  /// Waits until all rows of `list` have been read. Throws InputError if the file has become too
  /// short or cannot be read.
  void wait(const List& list);

 private:
  /// Maximum number of reads in progress at a time. Disks reach their highest throughput with about
  /// this number.
  static constexpr std::size_t kMaxReads = 256;

  /// A read of the pages of the file that contain rows [first, first + count) of a list.
  struct Read {
    List* list = nullptr;
    std::size_t first = 0;
    std::size_t count = 0;
    std::uint64_t page = 0;  ///< offset of the read in the file [bytes]
  };

  RowReader(const RowFile& file, FileDescriptor direct, std::uint64_t context,
            std::size_t slot_bytes, std::size_t reads);

  void work();
  std::size_t under_way() const { return reads_.size() - idle_.size(); }
  /// Plans the next reads: assigns the rows that come next in the lists to unused elements of
  /// reads_. Returns the indices of these elements. Requires that mutex_ is locked.
  std::vector<std::size_t> next_reads();
  /// Submits reads to the operating system; those that it does not accept count as failed. slots:
  /// indices of the reads in reads_.
  void submit(std::span<const std::size_t> slots);
  /// Waits until some of the reads in progress have ended, and calls finish() for them.
  void collect();
  /// Completes a read that has ended: copies its rows to the address that their list states. slot:
  /// index of the read in reads_. result: number of bytes read, or negative if the read failed.
  void finish(std::size_t slot, std::int64_t result);

  const RowFile& file_;
  FileDescriptor direct_;
  std::uint64_t context_;                                  ///< aio_context_t
  std::size_t slot_bytes_;                                 ///< capacity of a read
  std::unique_ptr<std::uint8_t, void (*)(void*)> memory_;  ///< [reads_.size(), slot_bytes_]
  std::vector<Read> reads_;
  std::vector<std::size_t> idle_;  ///< elements of reads_ that read nothing

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<List*> lists_;  ///< lists with rows that have not been requested
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace cudp
