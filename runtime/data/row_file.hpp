#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "runtime/config/rows_in.hpp"

namespace cudp {

/// Owns a file descriptor and closes it.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

/// Makes a file without a name on the disk of `folder`. It is deleted when it is closed, and only
/// its owner can read it. data: name of the data set, for messages. can_be_named: if not null,
/// receives whether linkat() can give the file a name. Throws Error if no file can be made there.
FileDescriptor unnamed_file(const std::filesystem::path& folder, const std::string& data,
                            bool* can_be_named = nullptr);

/// Features of examples in a memory-mapped file: records of equal size, one after another; a row is
/// the record of one example. Rows are copied when they are needed. The operating system can drop
/// the file's pages at any time, so they do not count as memory of this process. Thread-safe.
///
/// Functions that copy throw InputError if the file has become too short or cannot be read. Another
/// program may change the file between two copies of a row. So everything that is computed from a
/// row in a step, such as its gradient's norm and its contribution to a sum, must come from one
/// copy.
class RowFile {
 public:
  /// Maps a file of rows into memory. name: name of the file, for messages. first_byte: offset of
  /// the first row in the file [bytes]. row_bytes, rows: size of a row, and number of rows.
  /// is_unnamed: whether the file has no name yet, so that link_to() can give it one.
  /// folder_for_copies: folder on whose disk files with copies of rows may be made; empty: none.
  /// Throws InputError if the file is too short, Error if it cannot be mapped.
  RowFile(std::string name, FileDescriptor file, std::uint64_t first_byte, std::size_t row_bytes,
          std::size_t rows, bool is_unnamed = false, std::filesystem::path folder_for_copies = {});
  ~RowFile();
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  RowFile(RowFile&&) = delete;
  RowFile& operator=(RowFile&&) = delete;

  std::size_t row_bytes() const { return row_bytes_; }
  std::size_t rows() const { return rows_; }
  /// Returns the offset of a row in the file [bytes].
  std::uint64_t offset(std::size_t row) const { return first_byte_ + row * row_bytes_; }
  const std::string& name() const { return name_; }
  const std::filesystem::path& folder_for_copies() const { return folder_for_copies_; }
  /// Returns whether the operating system can keep the whole file in its page cache, i.e. whether
  /// the file is smaller than the available memory.
  bool stays_in_memory() const { return stays_in_memory_; }
  /// Treats the file as one that does not fit into memory. For tests.
  void let_exceed_memory() { stays_in_memory_ = false; }

  /// Opens the file for reading a second time. flags: additional flags of open(). If that is not
  /// possible, e.g. because /proc is not mounted, returns a FileDescriptor whose number() is
  /// negative.
  FileDescriptor open_again(int flags) const;

  /// Gives a file without a name, made by a RowFileWriter, the name `path`, so that the file stays
  /// when the program ends. `path` must be on the same disk. Returns false if that is not possible,
  /// or if the file has a name already.
  bool link_to(const std::filesystem::path& path) const;

  /// Copies the rows with these indices, in this order, to `to` [rows.size(), row_bytes()].
  void copy(std::span<const std::uint32_t> rows, std::uint8_t* to) const;
  /// Copies rows [first, first + count) to `to` [count, row_bytes()]. For many rows this is faster
  /// than copying a list of rows.
  void copy(std::size_t first, std::size_t count, std::uint8_t* to) const;

  /// Asks the operating system to read rows from the disk in advance, if the file is too large to
  /// stay in memory. For a caller that copies the rows with the ascending indices `rows` in parts
  /// of `part` rows: call it before copying the part that begins at rows[at].
  void read_ahead(std::span<const std::uint32_t> rows, std::size_t at, std::size_t part) const;

  /// Returns whether the file is still long enough for all rows.
  bool has_all_rows() const;
  /// Throws InputError with the message that the file has become too short or cannot be read. For
  /// callers that read the file without copy().
  [[noreturn]] void refuse() const;

 private:
  void request(std::span<const std::uint32_t> rows) const;

  std::string name_;
  FileDescriptor file_;
  std::uint64_t first_byte_;
  std::size_t row_bytes_;
  std::size_t rows_;
  bool is_unnamed_;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  bool stays_in_memory_ = true;
  std::filesystem::path folder_for_copies_;
};

/// Opens a file of rows. first_byte: position of the first row in the file [bytes]. row_bytes: size
/// of a row. rows: number of rows. folder_for_copies: folder on whose disk files with copies of
/// rows may be made; empty: none. Throws InputError if the file cannot be opened or is too short,
/// Error if it cannot be mapped.
std::shared_ptr<const RowFile> open_rows(const std::filesystem::path& path,
                                         std::uint64_t first_byte, std::size_t row_bytes,
                                         std::size_t rows,
                                         const std::filesystem::path& folder_for_copies = {});

/// Makes a file without a name, with space on the disk for `rows` rows, whose content the caller
/// writes later. Returns null if the disk has less than twice this space. folder: the file is made
/// on the disk of this folder. data: name of the data set, for messages. row_bytes: size of a row.
/// Throws Error if the file cannot be made or mapped.
std::shared_ptr<const RowFile> make_empty_rows(const std::filesystem::path& folder,
                                               const std::string& data, std::size_t row_bytes,
                                               std::size_t rows);

/// Writes rows to a file without a name. No other program can open the file. It is deleted when the
/// program ends, even by a crash, unless RowFile::link_to() has given it a name.
class RowFileWriter {
 public:
  /// Makes an empty file without a name. folder: folder on whose disk the file is made. data: name
  /// of the data set, for messages. row_bytes: size of a row. Throws Error if no file can be made
  /// there.
  RowFileWriter(const std::filesystem::path& folder, std::string data, std::size_t row_bytes);

  const std::filesystem::path& folder() const { return folder_; }

  /// Appends one or more whole rows to the file. Throws Error if the disk is full.
  void append(std::span<const std::uint8_t> rows);
  /// Ends writing, and returns the file for reading. No more rows may be appended after this.
  std::shared_ptr<const RowFile> finish();

 private:
  std::filesystem::path folder_;
  std::string data_;
  std::size_t row_bytes_;
  bool can_be_named_ = false;  // set while file_ is made
  FileDescriptor file_;
  std::uint64_t bytes_ = 0;
};

/// Whether the features of a data set are kept in memory or in a file, and in which folder such a
/// file is made.
struct RowStorage {
  RowsIn where = RowsIn::memory;
  /// Folder on whose disk the program makes its own files: rows that it has converted, and copies
  /// of rows in another order.
  std::filesystem::path folder{};

  /// Returns whether the features of a data set are kept in a file. bytes: size of the features of
  /// all its examples.
  bool in_file(std::uint64_t bytes) const;
};

}  // namespace cudp
