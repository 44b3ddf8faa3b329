#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "runtime/config/rows_in.hpp"

namespace cudp {

/// A file descriptor, closed at the end.
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

/// Features of examples in a file: records of equal size, one after another. The file is mapped,
/// and rows are copied when they are needed. Its pages belong to the system, which can drop them,
/// so that they count as no memory of this process. Any thread may call any function.
///
/// All functions that copy throw InputError if the file has become too short for its rows, or if
/// it cannot be read. A row may have changed since it was copied last: what is computed from a row,
/// such as its norm and its contribution to a sum, must come from one copy.
class RowFile {
 public:
  /// name: of the file, for messages. first_byte: position of the first row. Throws InputError if
  /// the file is too short, Error if it cannot be mapped.
  RowFile(std::string name, FileDescriptor file, std::uint64_t first_byte, std::size_t row_bytes,
          std::size_t rows);
  ~RowFile();
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  RowFile(RowFile&&) = delete;
  RowFile& operator=(RowFile&&) = delete;

  std::size_t row_bytes() const { return row_bytes_; }
  const std::string& name() const { return name_; }

  /// Copies the listed rows to `to` [rows.size(), row_bytes()].
  void copy(std::span<const std::uint32_t> rows, std::uint8_t* to) const;
  /// Copies rows [first, first + count) to `to`. Faster than the other function for many rows.
  void copy(std::size_t first, std::size_t count, std::uint8_t* to) const;

  /// Starts to read rows from the disk that are copied some calls later, if the file is too large
  /// to stay in memory. The caller copies `rows`, ascending, in parts of `part` rows, and calls
  /// this for the part that begins at `at`, before it copies it.
  void read_ahead(std::span<const std::uint32_t> rows, std::size_t at, std::size_t part) const;

 private:
  void request(std::span<const std::uint32_t> rows) const;
  bool has_all_rows() const;
  [[noreturn]] void refuse() const;

  std::string name_;
  FileDescriptor file_;
  std::uint64_t first_byte_;
  std::size_t row_bytes_;
  std::size_t rows_;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  bool stays_in_memory_ = true;
};

/// Opens a file of rows. Throws as RowFile does, and InputError if the file cannot be opened.
std::shared_ptr<const RowFile> open_rows(const std::filesystem::path& path,
                                         std::uint64_t first_byte, std::size_t row_bytes,
                                         std::size_t rows);

/// Writes a file of rows that has no name, so that no other program can open it and that nothing of
/// it is left at the end, however the program ends.
class RowFileWriter {
 public:
  /// folder: where the file's space is taken from. data: name of the data set, for messages. Throws
  /// Error if no file can be made there.
  RowFileWriter(const std::filesystem::path& folder, std::string data, std::size_t row_bytes);

  /// Appends whole rows. Throws Error if the disk is full.
  void append(std::span<const std::uint8_t> rows);
  /// Returns the file. No more rows may be appended.
  std::shared_ptr<const RowFile> finish();

 private:
  std::filesystem::path folder_;
  std::string data_;
  std::size_t row_bytes_;
  FileDescriptor file_;
  std::uint64_t bytes_ = 0;
};

/// Where the features of a data set are kept.
struct RowStorage {
  RowsIn where = RowsIn::memory;
  /// Folder that has space for rows which must be converted first.
  std::filesystem::path folder{};

  /// Returns whether features of this size stay in a file [bytes].
  bool in_file(std::uint64_t bytes) const;
};

}  // namespace cudp
