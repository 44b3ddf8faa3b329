#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/base/threads.hpp"
#include "runtime/data/row_file.hpp"

namespace cudp {

/// Function that also receives the rows which copy_in_one_pass() reads, so that the file need not
/// be read a second time for it.
struct RowUse {
  /// Receives consecutive rows of the file: the index of the first one, and their bytes. Called for
  /// all rows, by several threads, in any order.
  std::function<void(std::size_t first, std::span<const std::uint8_t> rows)> use;
  /// Each call's first row is a multiple of this number.
  std::size_t multiple = 1;
};

/// Arguments of copy_in_one_pass(): lists of rows to copy from one file to another.
struct RowPass {
  const RowFile& from;
  std::span<const std::vector<std::uint32_t>> lists;  ///< each ascending
  /// Row i of list k is copied to row k * slot_rows + i of this file, so that the rows of a list
  /// lie together. A list with more than slot_rows rows is not copied.
  const RowFile& to;
  /// Capacity of a list in `to`. slot_rows * row_bytes() must be a multiple of kDirectPage.
  std::size_t slot_rows = 0;
  /// Size of the memory in which rows of a list are collected before they are written [bytes], a
  /// multiple of kDirectPage.
  std::size_t chunk_bytes = 0;
  const RowUse* use = nullptr;  ///< null: the rows are only copied
  ThreadTeam* team = nullptr;   ///< threads that call `use`; required if `use` is set

  /// Page size: offsets and sizes of reads and writes that bypass the system's page cache must be
  /// multiples of this [bytes].
  static constexpr std::size_t kDirectPage = 4096;
  /// Number of writes that are in progress at a time.
  static constexpr std::size_t kWrites = 32;
  /// Number of bytes that are read at a time: a block. All rows of a call of RowUse::use are from
  /// one block.
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
  /// Maximum memory for reads that are in progress [bytes]. Requires that a row has at most
  /// kMaxRowBytes bytes.
  static constexpr std::size_t kReadBytes = std::size_t{9} << 20;
  static constexpr std::size_t kMaxRowBytes = std::size_t{1} << 16;

  /// Returns the smallest slot_rows for lists of up to `rows` rows: at least `rows`, and with a
  /// size of slot_rows * row_bytes that is a multiple of kDirectPage. row_bytes: size of a row
  /// [bytes].
  static std::size_t slot_of(std::size_t rows, std::size_t row_bytes);
};

/// Reads the file pass.from once, from its first to its last row, in large blocks that bypass the
/// system's page cache, and copies the rows of all lists. Returns true if everything was copied.
/// Returns false if `stop` was set, if the system does not support such reads and writes on these
/// disks, if a read or a write failed (e.g. because pass.from was cut short), or if
/// pass.use->multiple rows are larger than a block. In this case pass.use may have received some of
/// the rows.
bool copy_in_one_pass(const RowPass& pass, const std::atomic<bool>& stop);

}  // namespace cudp
