#include "runtime/data/matrix_reader.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

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

class MatrixReader::Source {
 public:
  explicit Source(const MatrixFiles& files) : files_(files), faults_(files.name()) {
    ensure(!files.read_labels || files.classes >= 2, "labels must have classes");
    if (files.arrays != nullptr)
      open_arrays();
    else if (is_npz(files.features))
      open_archive();
    else
      open_files();
    check_shapes();
    if (rows_ == 0) expect_end();
  }

  Dataset empty() const {
    Dataset set;
    set.shape = shape_;
    set.holds_bytes = x_->is_bytes();
    set.classes = files_.classes;
    return set;
  }

  std::uint64_t rows() const { return rows_; }
  std::uint64_t reservable() const { return std::min(rows_, x_->reservable() / width_); }

  std::shared_ptr<const LentFeatures> lent() const {
    if (files_.arrays == nullptr || files_.malformed != Malformed::refuse) return nullptr;
    const GivenArray& x = files_.arrays->x;
    const auto numbers = static_cast<std::size_t>(rows_) * width_;
    if (!x.is_contiguous() || numbers == 0) return nullptr;
    LentFeatures lent{.bytes = {}, .floats = {}, .owner = x.owner};
    if (x_->is_bytes())
      lent.bytes = {reinterpret_cast<const std::uint8_t*>(x.data), numbers};
    else if (x.type == "<f4" && reinterpret_cast<std::uintptr_t>(x.data) % alignof(float) == 0)
      lent.floats = {reinterpret_cast<const float*>(x.data), numbers};
    else
      return nullptr;
    return std::make_shared<const LentFeatures>(std::move(lent));
  }

  bool next(TableBlock& block) {
    while (read_block(block))
      if (!faults_.any()) return true;
    return false;
  }

 private:
  /// Throws InputError if bytes follow the last row.
  void expect_end() {
    x_->expect_end();
    if (y_) y_->expect_end();
  }

  /// Reads a block. After a faulty row, blocks are only searched for further faults.
  bool read_block(TableBlock& block) {
    const std::uint64_t max_rows = std::max<std::uint64_t>(
        1, std::min<std::uint64_t>(files_.max_rows, kMaxBlockNumbers / width_));
    const auto n = static_cast<std::size_t>(std::min(max_rows, rows_ - row_));
    if (n == 0) return false;
    block.first_row = row_;
    Dataset& to = block.examples;
    if (to.classes == 0) to = empty();
    if (x_->is_bytes()) {
      to.bytes.resize(n * width_);
      x_->read(std::span<std::uint8_t>(to.bytes));
    } else {
      to.floats.resize(n * width_);
      x_->read(std::span<float>(to.floats));
    }
    to.labels.assign(n, 0);
    if (y_) {
      labels_.resize(n);
      y_->read(std::span<std::int64_t>(labels_));
    }
    for (std::size_t i = 0; i < n && !faults_.full(); ++i) {
      if (!x_->is_bytes()) check_row(std::span(to.floats).subspan(i * width_, width_), row_ + i);
      if (y_) to.labels[i] = class_of(labels_[i], row_ + i);
    }
    row_ += n;
    if (files_.progress != nullptr)
      files_.progress->done(static_cast<double>(row_) / static_cast<double>(rows_));
    if (row_ == rows_ && !faults_.full()) expect_end();
    if (faults_.any() && (faults_.full() || row_ == rows_)) faults_.raise();
    return true;
  }

  void open_archive() {
    if (!files_.labels.empty())
      bad_input(files_.labels.string(), "",
                "no file of labels with a .npz file, whose member y has the labels", "one");
    file_ = open_random_access(files_.features);
    archive_.emplace(*file_);
    const auto member = [&](const char* name) {
      if (!archive_->has(name)) {
        std::string names;
        for (const std::string& n : archive_->names())
          names += (names.empty() ? "" : ", ") + shown(n);
        bad_input(files_.features.string(), "",
                  "the members x and y, as np.savez(FILE, x=x, y=y) makes them",
                  names.empty() ? "none" : names);
      }
      return archive_->open(name);
    };
    x_ = std::make_unique<NpyReader>(member("x.npy"));
    if (files_.read_labels) y_ = std::make_unique<NpyReader>(member("y.npy"));
  }

  void open_arrays() {
    if (files_.read_labels && !files_.arrays->y)
      bad_input(files_.name(), "", "labels beside it, as in (X, y)", "none");
    x_ = std::make_unique<GivenArrayReader>(files_.arrays->x);
    if (files_.read_labels) y_ = std::make_unique<GivenArrayReader>(*files_.arrays->y);
  }

  void open_files() {
    if (files_.read_labels && files_.labels.empty())
      bad_input(files_.features.string(), "", "--labels FILE.npy, or a .npz file with x and y",
                "no labels");
    x_ = std::make_unique<NpyReader>(open_bytes(files_.features));
    if (files_.read_labels) y_ = std::make_unique<NpyReader>(open_bytes(files_.labels));
  }

  void check_shapes() {
    const auto& shape = x_->shape();
    const bool images = shape.size() == 3 || shape.size() == 4;
    if (!x_->is_floating() && !(images && x_->is_bytes()))
      bad_input(x_->name(), "",
                images ? "bytes (uint8) or floating-point numbers"
                       : "floating-point numbers (<f2 or <f4)",
                "type " + x_->type());
    std::uint64_t width = shape.size() == 2 || images ? 1 : 0;
    for (std::size_t d = 1; d < shape.size() && width <= kMaxFeatures; ++d)
      width *= std::min<std::uint64_t>(shape[d], kMaxFeatures + 1);
    if (width < 1 || width > kMaxFeatures)
      bad_input(x_->name(), "",
                "a matrix of rows with 1 to " + std::to_string(kMaxFeatures) +
                    " features, or as many pixels of images (n, height, width) or (n, channels, "
                    "height, width)",
                "the shape " + text_of(shape));
    rows_ = shape[0];
    width_ = static_cast<std::size_t>(width);
    const auto side = [&](std::size_t d) { return static_cast<int>(shape[d]); };
    shape_ = shape.size() == 2   ? Shape{side(1), 1, 1}
             : shape.size() == 3 ? Shape{1, side(1), side(2)}
                                 : Shape{side(1), side(2), side(3)};
    if (!y_) return;
    const auto& labels = y_->shape();
    if (y_->is_floating())
      bad_input(y_->name(), "", "labels of a type of whole numbers, such as int64",
                "type " + y_->type());
    if (labels.size() > 2 || (labels.size() == 2 && labels[1] != 1))
      bad_input(y_->name(), "", "one label for each row of features",
                labels.size() == 2
                    ? std::to_string(labels[1])
                    : "an array of " + std::to_string(labels.size()) + " dimensions");
    // The number of rows may be private, so the message does not state it.
    if (labels[0] != rows_)
      bad_input(y_->name(), "", "one label for each row of features",
                labels[0] < rows_ ? "fewer" : "more");
  }

  /// Returns an array's shape with n for the number of rows, which may be private.
  static std::string text_of(const std::vector<std::uint64_t>& shape) {
    std::string out = "(n";
    for (std::size_t d = 1; d < shape.size(); ++d) out += ", " + std::to_string(shape[d]);
    return out + (shape.size() == 1 ? ",)" : ")");
  }

  void check_row(std::span<float> row, std::uint64_t number) {
    const std::size_t at = first_not_finite(row);
    if (at == row.size()) return;
    if (files_.malformed == Malformed::refuse)
      faults_.add_at("row " + std::to_string(number) + ", column " + std::to_string(at),
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

  MatrixFiles files_;
  TableFaults faults_;
  std::unique_ptr<RandomAccessBytes> file_;  // file of an archive
  std::optional<ZipArchive> archive_;
  std::unique_ptr<ArrayReader> x_;
  std::unique_ptr<ArrayReader> y_;  // null if labels are not read
  std::uint64_t rows_ = 0;
  std::size_t width_ = 0;  // features of a row
  Shape shape_;
  std::uint64_t row_ = 0;  // index of the next row
  std::vector<std::int64_t> labels_;
};

MatrixReader::MatrixReader(const MatrixFiles& files) : source_(std::make_unique<Source>(files)) {}
MatrixReader::~MatrixReader() = default;

Dataset MatrixReader::empty() const { return source_->empty(); }
std::uint64_t MatrixReader::rows() const { return source_->rows(); }
std::uint64_t MatrixReader::reservable() const { return source_->reservable(); }
bool MatrixReader::next(TableBlock& block) { return source_->next(block); }
std::shared_ptr<const LentFeatures> MatrixReader::lent() const { return source_->lent(); }

}  // namespace cudp
