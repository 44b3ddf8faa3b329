#include "runtime/data/matrix_reader.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "runtime/base/busy.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/given_array_reader.hpp"
#include "runtime/data/npy.hpp"
#include "runtime/data/zip.hpp"

namespace cudp {
namespace {

bool is_npz(const std::filesystem::path& path) { return path.extension() == ".npz"; }

/// Returns the index of the first number of the row that is not finite; the row's size if there is
/// none.
std::size_t first_not_finite(std::span<const float> row) {
  float sum = 0.0f;  // 0 * x is 0 only for finite x, so this needs no branch per number
  for (const float x : row) sum += 0.0f * x;
  if (sum == 0.0f) return row.size();
  return static_cast<std::size_t>(
      std::find_if(row.begin(), row.end(), [](float x) { return !std::isfinite(x); }) -
      row.begin());
}

const char* name_of_not_finite(float x) {
  return std::isnan(x) ? "nan" : x > 0.0f ? "inf" : "-inf";
}

}  // namespace

/// Implementation of MatrixReader: opens the arrays, and converts their rows to blocks of examples.
/// Not thread-safe.
class MatrixReader::Source {
 public:
  explicit Source(const MatrixFiles& files) : files_(files), faults_(files.name()) {
    ensure(!files.read_labels || files.classes >= 2 || files.target,
           "labels must have classes, or bounds");
    if (files.given != nullptr)
      open_given();
    else if (is_npz(files.features))
      open_archive();
    else
      open_files();
    check_shapes();
    if (rows_ == 0) expect_end();
  }

  Dataset empty() const {
    Dataset set;
    set.shape = layout_.shape;
    set.classes = files_.classes;
    set.holds_bytes = layout_.is_bytes;
    return set;
  }

  std::uint64_t rows() const { return rows_; }
  std::uint64_t reservable() const { return std::min(rows_, x_->reservable() / width_); }

  std::shared_ptr<const BorrowedFeatures> borrowed() const {
    if (files_.given == nullptr || files_.malformed != Malformed::refuse || layout_.channels_last)
      return nullptr;
    const GivenArray& x = files_.given->x;
    const auto numbers = static_cast<std::size_t>(rows_) * width_;
    if (!x.is_contiguous() || numbers == 0) return nullptr;
    BorrowedFeatures borrowed{.bytes = {}, .floats = {}, .owner = x.owner};
    if (layout_.is_bytes)
      borrowed.bytes = {reinterpret_cast<const std::uint8_t*>(x.data), numbers};
    else if (x.type == "<f4" && reinterpret_cast<std::uintptr_t>(x.data) % alignof(float) == 0)
      borrowed.floats = {reinterpret_cast<const float*>(x.data), numbers};
    else
      return nullptr;
    return std::make_shared<const BorrowedFeatures>(std::move(borrowed));
  }

  std::shared_ptr<const RowFile> file_rows() const {
    const auto* const npy = dynamic_cast<const NpyReader*>(x_.get());
    const auto first = npy != nullptr ? npy->first_byte() : std::nullopt;
    if (!first || files_.malformed != Malformed::refuse || layout_.channels_last) return nullptr;
    if (!layout_.is_bytes && x_->type() != "<f4") return nullptr;
    return open_rows(files_.features, *first, width_ * (layout_.is_bytes ? 1 : sizeof(float)),
                     static_cast<std::size_t>(rows_), files_.storage.folder);
  }

  bool next(TableBlock& block) {
    while (read_block(block))
      if (!faults_.any()) return true;
    return false;
  }

 private:
  /// Throws InputError if an array has more elements than its header states.
  void expect_end() {
    x_->expect_end();
    if (y_) y_->expect_end();
  }

  /// Reads the next block of rows. Returns false, without changing `block`, if all rows were read
  /// before. Adds errors in rows to `faults_`; throws InputError with all of them if the list is
  /// full, or after the last row.
  bool read_block(TableBlock& block) {
    const std::uint64_t max_rows = std::max<std::uint64_t>(
        1, std::min<std::uint64_t>(files_.max_rows, kMaxBlockNumbers / width_));
    const auto n = static_cast<std::size_t>(std::min(max_rows, rows_ - row_));
    if (n == 0) return false;
    block.first_row = row_;
    Dataset& to = block.examples;
    if (to.classes == 0) to = empty();
    if (layout_.is_bytes)
      read_examples(to.bytes, n, byte_scratch_);
    else
      read_examples(to.floats, n, float_scratch_);
    read_labels(to, n);
    row_ += n;
    if (files_.progress != nullptr)
      files_.progress->done(static_cast<double>(row_) / static_cast<double>(rows_));
    if (row_ == rows_ && !faults_.full()) expect_end();
    if (faults_.any() && (faults_.full() || row_ == rows_)) faults_.raise();
    return true;
  }

  template <class T>
  void read_examples(std::vector<T>& to, std::size_t n, std::vector<T>& scratch) {
    to.resize(n * width_);
    x_->read(std::span<T>(to));
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = std::span<T>(to).subspan(i * width_, width_);
      if constexpr (std::is_same_v<T, float>)
        if (!faults_.full()) check_row(row, row_ + i);
      if (layout_.channels_last) channels_first(row, layout_.shape, scratch);
    }
  }

  void read_labels(Dataset& to, std::size_t n) {
    to.labels.assign(n, 0);
    if (files_.classes == 1) to.targets.assign(n, 0.0f);
    if (!y_) return;
    if (files_.target) {
      targets_.resize(n);
      y_->read(std::span<double>(targets_));
      for (std::size_t i = 0; i < n && !faults_.full(); ++i)
        to.targets[i] = target_of(targets_[i], row_ + i);
    } else {
      labels_.resize(n);
      y_->read(std::span<std::int64_t>(labels_));
      for (std::size_t i = 0; i < n && !faults_.full(); ++i)
        to.labels[i] = class_of(labels_[i], row_ + i);
    }
  }

  void open_archive() {
    if (!files_.labels.empty())
      bad_input(files_.labels.string(), "",
                "no file of labels with a .npz file, which has the labels itself", "one");
    file_ = open_random_access(files_.features);
    archive_.emplace(*file_);
    x_ = std::make_unique<NpyReader>(member(files_.names.features, "x"));
    if (files_.read_labels) y_ = std::make_unique<NpyReader>(member(files_.names.labels, "y"));
  }

  void open_given() {
    if (!files_.names.features.empty())
      bad_input(files_.name(), "", "no --arrays with arrays in memory, which have no name there",
                shown(files_.names.features));
    if (files_.read_labels && !files_.given->y)
      bad_input(files_.name(), "", "labels beside it, as in (X, y)", "none");
    x_ = std::make_unique<GivenArrayReader>(files_.given->x);
    if (files_.read_labels) y_ = std::make_unique<GivenArrayReader>(*files_.given->y);
  }

  /// Opens an array of the .npz file. name: name of the array, as the user stated it. usual: name
  /// to use if `name` is empty, in lower case; the array may have it in upper case.
  std::unique_ptr<ByteReader> member(const std::string& name, const std::string& usual) const {
    const std::string capital = usual == "x" ? "X" : "Y";
    const auto has = [&](const std::string& array) { return archive_->has(array + ".npy"); };
    if (!name.empty() && has(name)) return archive_->open(name + ".npy");
    if (name.empty() && has(usual) != has(capital))
      return archive_->open((has(usual) ? usual : capital) + ".npy");
    std::string names;
    for (std::string n : archive_->names()) {
      if (n.ends_with(".npy")) n.resize(n.size() - 4);
      names += (names.empty() ? "" : ", ") + shown(n);
    }
    const std::string file = files_.features.string();
    if (!name.empty())
      bad_input(file, "", "an array named " + shown(name), names.empty() ? "none" : names);
    bad_input(file, "",
              "the arrays x and y, or X and Y, as np.savez(FILE, x=x, y=y) makes them; --arrays "
              "NAME,NAME names others",
              names.empty() ? "none" : names);
  }

  void open_files() {
    if (!files_.names.features.empty())
      bad_input(files_.features.string(), "",
                "no --arrays with a .npy file, which has one array without a name",
                shown(files_.names.features));
    if (files_.read_labels && files_.labels.empty())
      bad_input(files_.features.string(), "", "--labels FILE.npy, or a .npz file with x and y",
                "no labels");
    x_ = std::make_unique<NpyReader>(open_bytes(files_.features));
    if (files_.read_labels) y_ = std::make_unique<NpyReader>(open_bytes(files_.labels));
  }

  void check_shapes() {
    layout_ = array_layout(x_->name(), x_->type(), x_->shape(), files_.form);
    rows_ = x_->shape()[0];
    width_ = static_cast<std::size_t>(layout_.shape.size());
    if (!y_) return;
    const auto& labels = y_->shape();
    const char* const one_each =
        files_.target ? "one target for each example" : "one label for each example";
    if (y_->is_floating() && !files_.target)
      bad_input(y_->name(), "",
                "labels of a type of whole numbers, such as int64; --target-bounds LOW,HIGH "
                "predicts a number instead",
                "type " + y_->type());
    // The message for a matrix states no size, because the number of rows may be private: it could
    // be the width of the matrix, if labels have the shape [1, rows].
    if (labels.size() > 2 || (labels.size() == 2 && labels[1] != 1))
      bad_input(y_->name(), "", one_each,
                labels.size() == 2
                    ? "an array of shape [rows, several]"
                    : "an array of " + std::to_string(labels.size()) + " dimensions");
    if (labels[0] != rows_)
      bad_input(y_->name(), "", one_each, labels[0] < rows_ ? "fewer" : "more");
  }

  /// Checks that all elements of a row are finite. If not, adds an error to faults_ or, with
  /// Malformed::missing, sets the whole row to zeros. row: its elements in the order of the file.
  /// number: its index.
  void check_row(std::span<float> row, std::uint64_t number) {
    const std::size_t at = first_not_finite(row);
    if (at == row.size()) return;
    if (files_.malformed == Malformed::refuse)
      faults_.add_at("row " + std::to_string(number) +
                         (layout_.sides.size() == 1 ? ", column " : ", index ") +
                         layout_.place_of(at),
                     "finite numbers (both counted from 0)", name_of_not_finite(row[at]));
    else
      std::fill(row.begin(), row.end(), 0.0f);
  }

  std::uint8_t class_of(std::int64_t label, std::uint64_t row) {
    if (label >= 0 && label < files_.classes) return static_cast<std::uint8_t>(label);
    if (files_.malformed == Malformed::refuse)
      faults_.add_at("label of row " + std::to_string(row),
                     "a class of 0 to " + std::to_string(files_.classes - 1),
                     label < 0 ? "a negative or very large number" : std::to_string(label));
    return 0;
  }

  float target_of(double target, std::uint64_t row) {
    if (!std::isfinite(target) && files_.malformed == Malformed::refuse)
      faults_.add_at("target of row " + std::to_string(row), "a finite number (counted from 0)",
                     name_of_not_finite(static_cast<float>(target)));
    return files_.target->scaled(std::isnan(target) ? files_.target->min : target);
  }

  MatrixFiles files_;
  TableFaults faults_;
  std::unique_ptr<RandomAccessBytes> file_;  // the .npz file
  std::optional<ZipArchive> archive_;
  std::unique_ptr<ArrayReader> x_;
  std::unique_ptr<ArrayReader> y_;  // labels; null if they are not read
  ArrayLayout layout_;
  std::uint64_t rows_ = 0;
  std::size_t width_ = 0;
  std::uint64_t row_ = 0;  // index of the next row
  std::vector<std::int64_t> labels_;
  std::vector<double> targets_;
  std::vector<float> float_scratch_;
  std::vector<std::uint8_t> byte_scratch_;
};

MatrixReader::MatrixReader(const MatrixFiles& files) : source_(std::make_unique<Source>(files)) {}
MatrixReader::~MatrixReader() = default;

Dataset MatrixReader::empty() const { return source_->empty(); }
std::uint64_t MatrixReader::rows() const { return source_->rows(); }
std::uint64_t MatrixReader::reservable() const { return source_->reservable(); }
bool MatrixReader::next(TableBlock& block) { return source_->next(block); }
std::shared_ptr<const BorrowedFeatures> MatrixReader::borrowed() const {
  return source_->borrowed();
}
std::shared_ptr<const RowFile> MatrixReader::file_rows() const { return source_->file_rows(); }

}  // namespace cudp
