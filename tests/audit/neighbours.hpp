#pragma once
// The data of non_interference_test.cpp, and what is done to them: people in a table, a matrix and
// visits, notes with vectors of their words, and pictures, of whose rows a change removes, adds or
// replaces some.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/npy_files.hpp"
#include "tests/support/small_data.hpp"

namespace cudp::neighbours {

namespace fs = std::filesystem;

using Rows = std::vector<std::string>;

inline constexpr std::size_t kRows = 300;
inline constexpr const char* kSchema = R"(name = "people"
missing = "?"
columns = [
  {name = "age", kind = "numeric", min = 17, max = 90, fill = 40},
  {name = "hours", kind = "numeric", min = 0, max = 40, fill = 20},
  {name = "kind", kind = "categorical", values = ["a", "b", "c"], unknown = "zeros"},
  {name = "ill", kind = "label", values = ["no", "yes"], fill = "no"},
]
)";

/// A patient has five visits, of which three are used.
inline constexpr const char* kUnitSchema = R"(name = "visits"
missing = "?"
unit = "who"
max_rows = 3
columns = [
  {name = "who", kind = "ignore"},
  {name = "age", kind = "numeric", min = 17, max = 90, fill = 40},
  {name = "hours", kind = "numeric", min = 0, max = 40, fill = 20},
  {name = "kind", kind = "categorical", values = ["a", "b", "c"], unknown = "zeros"},
  {name = "ill", kind = "label", values = ["no", "yes"], fill = "no"},
]
)";
inline constexpr const char* kUnitText = "S3CRET";  // begins the text of every unit

inline constexpr const char* kTextSchema = R"(name = "notes"
columns = [
  {name = "note", kind = "text"},
  {name = "ill", kind = "label", values = ["no", "yes"]},
]
)";
using small_data::kWords;

/// Words of no note of D, whose public vectors are finite and add up to infinity.
inline constexpr const char* kLargeWords[] = {"frost", "storm"};

/// Eight numbers a word.
inline std::string vectors() {
  std::string text;
  int at = 0;
  for (const char* word : kWords) {
    text += word;
    for (int i = 0; i < 8; ++i) text += " " + std::to_string((++at * 37) % 19 - 9) + "e-1";
    text += '\n';
  }
  for (const char* word : kLargeWords)
    text += std::string(word) + " 3e38 3e38 -3e38 3e38 1 2 3e38 -3e38\n";
  return text;
}

/// A function after padded channels, where what is not finite once stayed.
inline constexpr const char* kNormAfterTanh = R"(name = "norm-after-tanh"
layers = [
  { type = "embedding", name = "words" },
  { type = "mean" },
  { type = "dense", name = "a", out = 8 },
  { type = "tanh" },
  { type = "groupnorm", name = "n", groups = 1 },
  { type = "dense", name = "b", out = "outputs" },
]
)";

inline Rows notes() {
  std::mt19937_64 random(8);
  Rows rows;
  for (std::size_t i = 0; i < kRows; ++i) rows.push_back(small_data::note_of(random, 15));
  return rows;
}

/// Whether these are texts: one comma a row in place of three.
inline bool is_notes(const Rows& rows) { return std::ranges::count(rows.front(), ',') == 1; }

inline std::string long_note() {
  std::string note(5000, 'x');
  note += " \xff\xfe";
  for (int i = 0; i < 500; ++i) note += " worse";
  return note;
}

inline Rows table() {
  std::mt19937_64 random(5);
  Rows rows;
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    const bool ill = age + hours + random() % 20 > 80;
    rows.push_back(std::to_string(age) + "," + std::to_string(hours) + "," + "abc"[random() % 3] +
                   (ill ? ",yes" : ",no"));
  }
  return rows;
}

/// 28 x 28 grey images in IDX files, two rows of bytes for each example: the image and its label.
struct Images {
  std::vector<std::string> pixels;
  std::string labels;
};

inline Images images() {
  std::mt19937_64 random(6);
  Images all;
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto label = static_cast<char>(random() % 10);
    std::string image(784, '\0');
    for (std::size_t p = 0; p < image.size(); ++p)
      if (p / 78 == static_cast<std::size_t>(label)) image[p] = static_cast<char>(random() % 256);
    all.pixels.push_back(std::move(image));
    all.labels += label;
  }
  return all;
}

/// What is done to D. Each works on a table, of numbers or of texts, and on images.
struct Change {
  const char* name;
  bool keeps_size;
  void (*rows)(Rows&);
  void (*pictures)(Images&);
  bool malformed = false;    ///< a row that a table is refused for, unless it is told not to be
  bool leaves_none = false;  ///< no row is left: a table of one has that for a neighbour
};

template <std::size_t At>
void remove_row(Rows& rows) {
  rows.erase(rows.begin() + At);
}
template <std::size_t At>
void remove_image(Images& all) {
  all.pixels.erase(all.pixels.begin() + At);
  all.labels.erase(At, 1);
}

inline std::string relabelled(const std::string& row) {
  return row.ends_with(",yes") ? row.substr(0, row.size() - 3) + "no"
                               : row.substr(0, row.size() - 2) + "yes";
}

inline const Change kChanges[] = {
    {"first_row_removed", false, remove_row<0>, remove_image<0>},
    {"middle_row_removed", false, remove_row<kRows / 2>, remove_image<kRows / 2>},
    {"last_row_removed", false, remove_row<kRows - 1>, remove_image<kRows - 1>},
    {"label_flipped", true, [](Rows& rows) { rows[7] = relabelled(rows[7]); },
     [](Images& all) { all.labels[7] = static_cast<char>((all.labels[7] + 1) % 10); }},
    {"extreme_row", true,
     [](Rows& rows) {
       rows[9] = is_notes(rows) ? long_note() + ",yes" : "1e300,-1e300,strange,yes";
     },
     [](Images& all) { all.pixels[9].assign(784, '\xff'); }},
    {"missing_values", true, [](Rows& rows) { rows[11] = is_notes(rows) ? ",no" : "?,0,?,no"; },
     [](Images& all) { all.pixels[11].assign(784, '\0'); }},
    {"overflowing_row", true,
     [](Rows& rows) {
       rows[13] = is_notes(rows) ? "frost storm frost storm,yes" : "1e308,-1e308,a,yes";
     },
     [](Images& all) { all.pixels[13].assign(784, '\x80'); }},
    {"row_added", false, [](Rows& rows) { rows.push_back(rows[3]); },
     [](Images& all) {
       all.pixels.push_back(all.pixels[3]);
       all.labels += all.labels[3];
     }},
    {"class_removed", false,
     [](Rows& rows) { std::erase_if(rows, [](auto& r) { return r.ends_with("yes"); }); },
     [](Images& all) {
       for (std::size_t i = all.labels.size(); i-- > 0;)
         if (all.labels[i] == 3) {
           all.pixels.erase(all.pixels.begin() + static_cast<std::ptrdiff_t>(i));
           all.labels.erase(i, 1);
         }
     }},
    {"no_rows", false, [](Rows& rows) { rows.clear(); }, [](Images& all) { all = {}; }, false,
     true},
    {"malformed_row", true, [](Rows& rows) { rows[17] = "old,\xff,c"; }, [](Images&) {}, true},
    {"malformed_label_and_quote", true, [](Rows& rows) { rows[19] = "\"2\"0,7,a,perhaps"; },
     [](Images&) {}, true},
};

inline void write_images(const fs::path& folder, const std::string& part, const Images& all) {
  std::string pixels;
  for (const std::string& image : all.pixels) pixels += image;
  small_data::write_grey_images(folder, part, pixels, all.labels);
}

/// The rows of a table as visits of patients, whose names are others in every table.
inline std::string visits_of(const Rows& rows) {
  std::string all;
  for (const std::string& row : rows) all += row;
  const std::string name = kUnitText + std::to_string(std::hash<std::string>{}(all));
  std::string text = "who,age,hours,kind,ill\n";
  for (std::size_t i = 0; i < rows.size(); ++i)
    text += name + "-" + std::to_string(7 * i % (kRows / 5)) + "," + rows[i] + "\n";
  return text;
}

/// The number of a table's cell in a matrix, which need not be finite.
inline float number_of(const std::string& cell) {
  if (cell.size() == 1 && cell[0] >= 'a' && cell[0] <= 'c')
    return static_cast<float>(cell[0] - 'a');
  char* end = nullptr;
  const double x = std::strtod(cell.c_str(), &end);
  return end == cell.c_str() ? std::nanf("") : static_cast<float>(x);
}

/// The first cells of each row, in order; cells that a row lacks are NaN.
inline std::vector<float> cells_of(const Rows& rows, int cells) {
  std::vector<float> numbers;
  for (const std::string& row : rows) {
    std::istringstream in(row);
    std::string cell;
    for (int i = 0; i < cells; ++i)
      numbers.push_back(std::getline(in, cell, ',') ? number_of(cell) : std::nanf(""));
  }
  return numbers;
}

/// The rows of a table as a .npz file of three features; cells that a row lacks are NaN.
inline std::string matrix_of(const Rows& rows) {
  std::vector<std::int64_t> y;
  for (const std::string& row : rows)
    y.push_back(row.ends_with("yes") ? 1 : row.ends_with("no") ? 0 : 77);
  const std::string features =
      rows.empty() ? npy("<f4", "(0, 3)", "") : npy_floats(rows.size(), cells_of(rows, 3));
  return zip({{"x.npy", features}, {"y.npy", npy_labels(y)}}, {.deflate = true});
}

/// The same rows with their first number to predict, which need not be finite.
inline std::string targets_of(const Rows& rows) {
  const std::string n = std::to_string(rows.size());
  return zip({{"X.npy", npy("<f4", "(" + n + ", 3)", bytes_of(cells_of(rows, 3)))},
              {"Y.npy", npy("<f4", "(" + n + ",)", bytes_of(cells_of(rows, 1)))}});
}

/// Images as a .npz file of bytes.
inline std::string image_array_of(const Images& all) {
  std::string pixels;
  for (const std::string& image : all.pixels) pixels += image;
  const std::string n = std::to_string(all.labels.size());
  return zip({{"x.npy", npy("|u1", "(" + n + ", 28, 28)", pixels)},
              {"y.npy", npy("|u1", "(" + n + ",)", all.labels)}});
}

}  // namespace cudp::neighbours
