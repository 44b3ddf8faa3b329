// Nothing else leaves. The program runs on data D, and what passes the witness is written down;
// then it runs on other data D', and every value that leaves is replaced by D's. Whatever then
// differs in what others may see is a function of the private rows that nobody paid for: release/,
// the list of files, stdout, stderr, the exit code, and the public arguments of every release.
// (Private: what is in private/. Not seen by this: a wrong sensitivity, which the audits are for,
// and time.)
//
// Neighbours differ in one row; D' here may differ in more, since with the values replayed no
// difference may show at all.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/random_numbers.hpp"
#include "runtime/data/holdout.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/words.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

using Rows = std::vector<std::string>;

constexpr std::size_t kRows = 300;
constexpr const char* kSchema = R"(name = "people"
missing = "?"
columns = [
  {name = "age", kind = "numeric", min = 17, max = 90, fill = 40},
  {name = "hours", kind = "numeric", min = 0, max = 40, fill = 20},
  {name = "kind", kind = "categorical", values = ["a", "b", "c"], unknown = "zeros"},
  {name = "ill", kind = "label", values = ["no", "yes"], fill = "no"},
]
)";

/// A patient has five visits, of which three are used.
constexpr const char* kUnitSchema = R"(name = "visits"
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
constexpr const char* kUnitText = "S3CRET";  // begins the text of every unit

constexpr const char* kTextSchema = R"(name = "notes"
columns = [
  {name = "note", kind = "text"},
  {name = "ill", kind = "label", values = ["no", "yes"]},
]
)";
constexpr const char* kWords[] = {"a", "cold", "pain", "no", "better", "worse", "day", "night"};

/// Words of no note of D, whose public vectors are finite and add up to infinity.
constexpr const char* kLargeWords[] = {"frost", "storm"};

/// Eight numbers a word.
std::string vectors() {
  std::string text;
  int at = 0;
  for (const char* word : kWords) {
    text += word;
    for (int i = 0; i < 8; ++i) text += " " + std::to_string((++at * 37) % 19 - 9) + "e-1";
    text += "\n";
  }
  for (const char* word : kLargeWords)
    text += std::string(word) + " 3e38 3e38 -3e38 3e38 1 2 3e38 -3e38\n";
  return text;
}

/// A function after padded channels, where what is not finite once stayed.
constexpr const char* kNormAfterTanh = R"(name = "norm-after-tanh"
layers = [
  { type = "embedding", name = "words" },
  { type = "mean" },
  { type = "dense", name = "a", out = 8 },
  { type = "tanh" },
  { type = "groupnorm", name = "n", groups = 1 },
  { type = "dense", name = "b", out = "outputs" },
]
)";

Rows notes() {
  std::mt19937_64 random(8);
  Rows rows;
  for (std::size_t i = 0; i < kRows; ++i) {
    std::string text;
    for (std::uint64_t n = random() % 15; n > 0; --n)
      text += std::string(kWords[random() % std::size(kWords)]) + " ";
    rows.push_back(text + (random() % 2 == 0 ? ",no" : ",yes"));
  }
  return rows;
}

/// Whether these are texts: one comma a row in place of three.
bool is_notes(const Rows& rows) { return std::ranges::count(rows.front(), ',') == 1; }

std::string long_note() {
  std::string note(5000, 'x');
  note += " \xff\xfe";
  for (int i = 0; i < 500; ++i) note += " worse";
  return note;
}

Rows table() {
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

Images images() {
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
  bool malformed = false;  ///< a row that a table is refused for, unless it is told not to be
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

std::string relabelled(const std::string& row) {
  return row.ends_with(",yes") ? row.substr(0, row.size() - 3) + "no"
                               : row.substr(0, row.size() - 2) + "yes";
}

const Change kChanges[] = {
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
    {"malformed_row", true, [](Rows& rows) { rows[17] = "old,\xff,c"; }, [](Images&) {}, true},
    {"malformed_label_and_quote", true, [](Rows& rows) { rows[19] = "\"2\"0,7,a,perhaps"; },
     [](Images&) {}, true},
};

std::string big_endian(std::uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
          static_cast<char>(n)};
}

void write_images(const fs::path& folder, const std::string& part, const Images& all) {
  fs::create_directories(folder);
  const auto n = static_cast<std::uint32_t>(all.pixels.size());
  std::string pixels = big_endian(0x803) + big_endian(n) + big_endian(28) + big_endian(28);
  for (const std::string& image : all.pixels) pixels += image;
  write_text(folder / (part + "-images-idx3-ubyte"), pixels);
  write_text(folder / (part + "-labels-idx1-ubyte"),
             big_endian(0x801) + big_endian(n) + all.labels);
}

/// How a training is made and ended: processes one after the other, the first begins it.
struct Way {
  const char* name;
  std::vector<Ending> endings;  ///< of each process
};

const Way kWays[] = {
    {"to_the_end", {{}}},
    {"interrupted_and_resumed", {{SIGINT, 2}, {}}},
    {"killed_twice_and_resumed", {{SIGKILL, 5}, {SIGKILL, 3}, {}}},
};

enum class Kind { table, images, texts, matrix, units };
constexpr const char* kDataOf[] = {"people.csv", "images", "notes.csv", "people.npz", "visits.csv"};

/// The rows of a table as visits of patients, whose names are others in every table.
std::string visits_of(const Rows& rows) {
  std::string all;
  for (const std::string& row : rows) all += row;
  const std::string name = kUnitText + std::to_string(std::hash<std::string>{}(all));
  std::string text = "who,age,hours,kind,ill\n";
  for (std::size_t i = 0; i < rows.size(); ++i)
    text += name + "-" + std::to_string(7 * i % (kRows / 5)) + "," + rows[i] + "\n";
  return text;
}

/// The number of a table's cell in a matrix, which need not be finite.
float number_of(const std::string& cell) {
  if (cell.size() == 1 && cell[0] >= 'a' && cell[0] <= 'c')
    return static_cast<float>(cell[0] - 'a');
  char* end = nullptr;
  const double x = std::strtod(cell.c_str(), &end);
  return end == cell.c_str() ? std::nanf("") : static_cast<float>(x);
}

/// The rows of a table as a .npz file of three features; cells that a row lacks are NaN.
std::string matrix_of(const Rows& rows) {
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (const std::string& row : rows) {
    std::istringstream cells(row);
    std::string cell;
    for (int i = 0; i < 3; ++i)
      x.push_back(std::getline(cells, cell, ',') ? number_of(cell) : std::nanf(""));
    y.push_back(row.ends_with("yes") ? 1 : row.ends_with("no") ? 0 : 77);
  }
  return zip({{"x.npy", npy_floats(rows.size(), x)}, {"y.npy", npy_labels(y)}}, {.deflate = true});
}

struct Case {
  const char* name;
  Kind kind;
  std::vector<std::string> flags;
  int exit;                  ///< of the last process
  bool one_step = false;     ///< or none: nothing to interrupt
  bool size_public = false;  ///< only changes that keep the number of rows are to be hidden
  bool overflows = false;    ///< where a row holds kLargeWords
  bool malformed = false;    ///< takes what it cannot read for missing
};

/// Most of such a short training would be the accountant's work, which knows public numbers alone:
/// all but each fourth of the cases take the one that is quicker, where their method has a choice.
const std::vector<std::string> kQuick = {"--accountant", "rdp"};
const std::vector<std::string> kPictures = {"--model", "cnn", "--batch", "40", "--steps", "6"};

bool has_accountant_of_its_own(const Case& c) {
  if (c.one_step) return true;  // linear methods that train in one go
  static const std::set<std::string> kNames = {"sgd_ma", "sgd_adv", "adp_theorem41"};
  return kNames.contains(c.name);
}

std::vector<Case> cases_as_listed() {
  const std::vector<std::string> linear = {"--model", "logistic", "--batch", "64", "--epochs", "2"};
  const auto row = [&](const char* name, const std::vector<std::string>& flags, int exit = 0) {
    return Case{name, Kind::table, with(linear, flags), exit};
  };
  const auto alone = [&](const char* name, const std::vector<std::string>& flags) {
    return Case{name, Kind::table, with({"--model", "logistic"}, flags), 0, true};
  };
  const auto known = [&](const char* name, const std::vector<std::string>& flags) {
    Case c = row(name, flags);
    c.flags.push_back("--size-is-public");
    c.size_public = true;
    return c;
  };
  const auto missing = [&](const char* name, Kind kind, const std::vector<std::string>& flags) {
    Case c{.name = name, .kind = kind, .flags = with(linear, flags), .exit = 0, .malformed = true};
    c.flags.insert(c.flags.end(), {"--malformed", "missing"});
    if (kind == Kind::matrix) c.flags.insert(c.flags.end(), {"--classes", "2"});
    return c;
  };
  const auto units = [&](const char* name, const std::vector<std::string>& flags) {
    return Case{name, Kind::units, with(linear, flags), 0};
  };
  const auto text = [&](const char* name, const std::vector<std::string>& flags) {
    return Case{name, Kind::texts,
                with({"--model", "sentences-lstm", "--tokens", "12", "--vocabulary", "words.txt",
                      "--vocabulary-is-public", "--batch", "40", "--steps", "6"},
                     flags),
                0};
  };
  const auto overflow = [&](const char* name, const std::vector<std::string>& flags) {
    return Case{.name = name,
                .kind = Kind::texts,
                .flags = with({"--embedding", "vectors.txt", "--tokens", "12", "--batch", "40",
                               "--steps", "6"},
                              flags),
                .exit = 0,
                .overflows = true};
  };
  const auto preset = [&](const char* name, const char* settings) {
    return Case{name, Kind::images, {"--preset", settings, "--batch", "40", "--steps", "6"}, 0};
  };
  const auto picture = [&](const char* name, const std::vector<std::string>& flags) {
    return Case{name, Kind::images, with(kPictures, flags), 0};
  };
  return {
      row("dpsgd", {}),
      row("mlp_per_layer", {"--model", "mlp", "--clipping", "per-layer"}),
      row("automatic", {"--clipping", "automatic", "--optimizer", "adam"}),
      row("ema", {"--ema", "0.9", "--schedule", "cosine"}),
      row("ts", {"--method", "dpsgd-ts", "--model", "mlp"}),
      row("decay", {"--method", "dpsgd-decay"}),
      row("quantile", {"--method", "dpsgd-quantile"}),
      row("quantile_normalised", {"--method", "dpsgd-quantile", "--quantile-normalise"}),
      row("adp", {"--method", "adp-sgd", "--schedule", "polynomial"}),
      row("adp_adaptive", {"--method", "adp-sgd", "--schedule", "adaptive"}),
      row("adaclip", {"--method", "adaclip"}),
      row("dpis", {"--method", "dpis", "--batch", "20"}),
      row("dpis_adaptive", {"--method", "dpis", "--batch", "20", "--dpis-adaptive-clip"}),
      row("norm_bound", {"--method", "norm-bound"}),
      row("sgd_ma", {"--method", "sgd-ma"}),
      row("weights", {"--class-weights", "1,20"}),
      row("weights_dpis", {"--class-weights", "1,20", "--method", "dpis", "--batch", "20"}),
      alone("weights_objpert", {"--class-weights", "0,3", "--method", "objpert"}),
      known("sgd_adv", {"--method", "sgd-adv", "--batch", "10"}),
      known("dpsgd_of_public_size", {}),
      known("dpis_of_public_size", {"--method", "dpis", "--batch", "20"}),
      known("adp_theorem41", {"--method", "adp-sgd", "--schedule", "polynomial", "--calibration",
                              "theorem41", "--batch", "10"}),
      alone("dp_agd", {"--method", "dp-agd", "--splits", "6"}),
      alone("dp_agd_laplace", {"--method", "dp-agd", "--splits", "6", "--noisy-min", "laplace"}),
      alone("dp_agd_mini_batch", {"--method", "dp-agd", "--splits", "6", "--mini-batch", "100"}),
      alone("outpert", {"--method", "outpert"}),
      alone("outpert_coarse", {"--method", "outpert", "--solver-tolerance", "1e-3"}),
      alone("objpert", {"--method", "objpert"}),
      alone("privgene", {"--method", "privgene", "--generations", "8", "--candidates", "20"}),
      row("pca", {"--features", "pca", "--feature-dimensions", "2"}),
      row("pca_dpis",
          {"--features", "pca", "--feature-dimensions", "2", "--method", "dpis", "--batch", "20"}),
      row("size_is_noisy_and_dpis_cannot_be_paid",
          {"--method", "dpis", "--batch", "299", "--epsilon", "0.6"}, 3),
      row("batch_above_the_examples", {"--batch", "5000"}, 2),
      row("private_test_rows", {"--test-data", "test.csv"}),
      row("public_test_rows", {"--test-data", "test.csv", "--test-data-is-public"}),
      row("normalised", {"--normalise", "unit"}),
      missing("malformed_rows", Kind::table, {}),
      missing("malformed_rows_normalised", Kind::table, {"--normalise", "layer", "--model", "mlp"}),
      missing("matrix", Kind::matrix, {}),
      missing("matrix_unit", Kind::matrix, {"--normalise", "unit"}),
      missing("matrix_layer_pca", Kind::matrix,
              {"--normalise", "layer", "--features", "pca", "--feature-dimensions", "2"}),
      row("holdout", {"--holdout", "0.3"}),
      row("holdout_figures", {"--holdout", "0.3", "--holdout-epsilon", "1", "--holdout-delta",
                              "1e-6", "--method", "dpsgd-quantile"}),
      row("holdout_dpis", {"--holdout", "0.3", "--holdout-epsilon", "1", "--holdout-delta", "1e-6",
                           "--method", "dpis", "--batch", "20"}),
      units("holdout_units",
            {"--holdout", "0.3", "--holdout-epsilon", "3", "--holdout-delta", "1e-6"}),
      units("units", {}),
      units("units_quantile", {"--method", "dpsgd-quantile"}),
      units("units_dpis", {"--method", "dpis", "--batch", "20", "--epsilon", "20"}),
      units("units_pca", {"--features", "pca", "--feature-dimensions", "2"}),
      Case{"units_dp_agd",
           Kind::units,
           {"--model", "logistic", "--method", "dp-agd", "--splits", "6"},
           0,
           true},
      Case{"units_outpert", Kind::units, {"--model", "logistic", "--method", "outpert"}, 0, true},
      Case{.name = "units_of_public_size",
           .kind = Kind::units,
           .flags = with(linear, {"--size-is-public"}),
           .exit = 0,
           .size_public = true},
      missing("units_malformed_rows", Kind::units, {}),
      text("texts", {}),
      text("texts_dpis", {"--method", "dpis", "--batch", "20"}),
      text("texts_per_layer", {"--clipping", "per-layer", "--optimizer", "adam"}),
      overflow("texts_that_overflow", {"--model", "tanh.toml"}),
      overflow("texts_that_overflow_adaclip", {"--model", "imdb-mean", "--method", "adaclip"}),
      overflow("texts_that_overflow_dpis",
               {"--model", "tanh.toml", "--method", "dpis", "--batch", "20"}),
      picture("cnn", {}),
      picture("cnn_tanh_per_layer", {"--activation", "tanh", "--clipping", "per-layer"}),
      picture("scatter", {"--features", "scatter", "--model", "scatter-linear"}),
      picture("scatter_standardised",
              {"--features", "scatter", "--model", "scatter-linear", "--feature-standardise"}),
      picture("image_pca", {"--features", "pca", "--feature-dimensions", "5", "--model", "mlp"}),
      preset("preset_mnist_cnn", "mnist-cnn"),
      preset("preset_mnist_hf", "mnist-hf"),
      preset("preset_mnist_quantile", "mnist-quantile"),
      preset("preset_mnist_adaclip", "mnist-adaclip"),
      preset("preset_fashion_cnn", "fashion-cnn"),
      preset("preset_fashion_hf", "fashion-hf"),
      row("preset_adult_logistic",
          {"--preset", "adult-logistic", "--schema", "people.csv.schema.toml"}),
      row("preset_bank_logistic",
          {"--preset", "bank-logistic", "--schema", "people.csv.schema.toml"}),
  };
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = [] {
    std::vector<Case> all = cases_as_listed();
    for (std::size_t c = 0; c < all.size(); ++c)
      if (c % 4 != 0 && !has_accountant_of_its_own(all[c]))
        all[c].flags.insert(all[c].flags.end(), kQuick.begin(), kQuick.end());
    return all;
  }();
  return kCases;
}

Rows data_of(const Case& c) { return c.kind == Kind::texts ? notes() : table(); }

/// What others may see of a training.
struct Seen {
  std::vector<int> exits;
  std::string out;
  std::string err;
  std::map<std::string, std::string> files;  ///< of release/; names alone of the others
};

/// Without what the clock says: times, speeds, and the lines of progress, which come by the clock.
std::string without_clock(const std::string& text) {
  static const std::regex kTime(R"(\d\d:\d\d:\d\d )");
  static const std::regex kSpeed(R"(\n?time  .*)");
  static const std::regex kProgress(R"(.*epoch .*\[[=> ]*\].*\n)");
  return std::regex_replace(std::regex_replace(std::regex_replace(text, kProgress, ""), kSpeed, ""),
                            kTime, "");
}

const std::vector<std::string> kResume = {"train", "--resume", "run"};

class Training {
 public:
  Training(const Case& c, const Way& way) : case_(c), way_(way) {}

  /// The folder that a training runs in, with data.
  fs::path work() const { return folder_.path() / "work"; }

  void write_data(const Rows& rows, const Images& all) const {
    const fs::path work = this->work();
    fs::create_directories(work);
    write_text(work / "people.csv.schema.toml", kSchema);
    const bool texts = case_.kind == Kind::texts;
    write_text(work / "people.csv", text_of(texts ? table() : rows));
    write_text(work / "people.npz", matrix_of(texts ? table() : rows));
    write_text(work / "visits.csv.schema.toml", kUnitSchema);
    write_text(work / "visits.csv", visits_of(texts ? table() : rows));
    write_text(work / "notes.csv.schema.toml", kTextSchema);
    write_text(work / "notes.csv", text_of(texts ? rows : notes()));
    std::string words;
    for (const char* word : kWords) words += std::string(word) + "\n";
    write_text(work / "words.txt", words);
    write_text(work / "vectors.txt", vectors());
    write_text(work / "tanh.toml", kNormAfterTanh);
    write_text(work / "test.csv", text_of(test_rows));
    write_images(work / "images", "train", all);
    Images few = images();
    few.pixels.resize(20);
    few.labels.resize(20);
    write_images(work / "images", "t10k", few);
  }

  Seen on(const Rows& rows, const Images& all, bool replays) {
    const fs::path work = this->work();
    fs::remove_all(work);
    write_data(rows, all);
    Seen seen;
    for (std::size_t i = 0; i < way_.endings.size(); ++i) {
      const Ended ended = run_witnessed(work, i == 0 ? first() : kResume, [&]() -> Witness* {
        if (!replays) return new RecordingWitness(folder_ / "values", way_.endings[i]);
        return new ReplayingWitness(folder_ / "values", folder_ / "position",
                                    folder_ / "differences", way_.endings[i]);
      });
      seen.exits.push_back(ended.exit);
      seen.out += without_clock(ended.out);
      seen.err += without_clock(ended.err);
    }
    for (const auto& entry : fs::recursive_directory_iterator(work)) {
      const std::string name = fs::relative(entry.path(), work).string();
      if (!entry.is_regular_file() || !name.starts_with("run/")) continue;
      seen.files[name] = name.starts_with("run/release/") ? content_of(entry.path()) : "";
    }
    return seen;
  }

  Rows test_rows = first_rows(50);

  static Rows first_rows(std::size_t count) {
    Rows rows = table();
    rows.resize(count);
    return rows;
  }

  std::string position() const { return folder_ / "position"; }
  std::string differences() const { return content_of(folder_ / "differences"); }
  bool all_replayed() const {
    return content_of(folder_ / "position") == std::to_string(fs::file_size(folder_ / "values"));
  }

 private:
  static std::string text_of(const Rows& rows) {
    std::string text = is_notes(rows) ? "note,ill\n" : "age,hours,kind,ill\n";
    for (const std::string& row : rows) text += row + "\n";
    return text;
  }

  std::vector<std::string> first() const {
    return with({"train", "--dataset", kDataOf[static_cast<int>(case_.kind)], "--epsilon", "3",
                 "--delta", "1e-5", "--seed", "7", "--threads", "1", "--out", "run",
                 "--checkpoint-every", "2", "--feature-cache", "none"},
                case_.flags);
  }

  TemporaryFolder folder_;
  const Case& case_;
  const Way& way_;
};

/// Every case is run in every way on every change by scripts/check.sh (CUDP_ALL_NEIGHBOURS); else
/// each on so many of them that every pair of a case and a change, and of a case and a way, occurs
/// over the cases.
bool is_chosen(const Case& of, std::size_t c, std::size_t way, std::size_t change) {
  if (std::getenv("CUDP_ALL_NEIGHBOURS") != nullptr) return true;
  if (of.overflows && kChanges[change].name == std::string("overflowing_row")) return true;
  if (kChanges[change].malformed) return of.malformed;
  const auto is_usual = [&](const Change& one) {
    return !one.malformed && (one.keeps_size || !of.size_public);
  };
  const auto usual = static_cast<std::size_t>(std::ranges::count_if(kChanges, is_usual));
  const auto at = static_cast<std::size_t>(
      std::count_if(kChanges, kChanges + change, is_usual));  // its place among them
  return (c + way) % usual == at || (c + way + 3) % usual == at;
}

class NonInterference : public testing::TestWithParam<std::size_t> {};

TEST_P(NonInterference, OtherRowsShowInNothingThatLeaves) {
  const Case& c = cases()[GetParam()];
  for (std::size_t w = 0; w < std::size(kWays); ++w) {
    if (w > 0 && (c.one_step || c.exit != 0)) continue;
    const Way& way = kWays[w];
    Training training(c, way);
    const Seen expected = training.on(data_of(c), images(), false);
    ASSERT_EQ(expected.exits.back(), c.exit) << c.name << ": " << expected.err;
    for (std::size_t i = 0; i < std::size(kChanges); ++i) {
      if (c.size_public && !kChanges[i].keeps_size) continue;
      if (kChanges[i].malformed && !c.malformed) continue;
      if (!is_chosen(c, GetParam(), w, i)) continue;
      SCOPED_TRACE(std::string(c.name) + ", " + way.name + ", " + kChanges[i].name);
      Rows rows = data_of(c);
      Images pictures = images();
      kChanges[i].rows(rows);
      kChanges[i].pictures(pictures);
      fs::remove(training.position());
      const Seen seen = training.on(rows, pictures, true);
      EXPECT_EQ(training.differences(), "");
      EXPECT_TRUE(training.all_replayed());
      EXPECT_EQ(seen.exits, expected.exits);
      EXPECT_EQ(seen.out, expected.out);
      EXPECT_EQ(seen.err, expected.err);
      EXPECT_EQ((seen.out + seen.err).find(kUnitText), std::string::npos);
      for (const auto& [name, content] : expected.files) {
        EXPECT_EQ(content.find(kUnitText), std::string::npos) << name;
        ASSERT_TRUE(seen.files.contains(name)) << name;
        EXPECT_TRUE(seen.files.at(name) == content) << name << " differs";
      }
      EXPECT_EQ(seen.files.size(), expected.files.size());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, NonInterference, testing::Range<std::size_t>(0, cases().size()),
                         [](const auto& info) { return std::string(cases()[info.param].name); });

/// What is measured on private test rows, and drawn of it, shows in private/ alone. Of some rows
/// numbers are not defined, and pictures would be empty; that shows in nothing either.
TEST(PrivateTestRows, ShowInNothingThatOthersSee) {
  const auto one_class = [](const char* label) {
    Rows rows = Training::first_rows(50);
    std::erase_if(rows, [&](const std::string& row) { return !row.ends_with(label); });
    return rows;
  };
  Rows flipped = Training::first_rows(50);
  for (std::string& row : flipped) row = relabelled(row);
  const std::vector<Rows> others = {flipped, one_class("yes"), one_class("no"),
                                    Training::first_rows(1), Rows{"1e300,-1e300,strange,yes"}};
  for (const Case& c : cases()) {
    if (c.name != std::string("private_test_rows")) continue;
    for (const Way& way : kWays) {
      Training training(c, way);
      const Seen expected = training.on(data_of(c), images(), false);
      ASSERT_EQ(expected.exits.back(), 0) << expected.err;
      EXPECT_TRUE(expected.files.contains("run/private/evaluation.json"));
      for (const Rows& rows : others) {
        SCOPED_TRACE(std::string(way.name) + ", " + std::to_string(rows.size()) + " rows, first " +
                     rows.front());
        training.test_rows = rows;
        fs::remove(training.position());
        const Seen seen = training.on(data_of(c), images(), true);
        EXPECT_EQ(training.differences(), "");
        EXPECT_EQ(seen.exits, expected.exits);
        EXPECT_EQ(seen.out, expected.out);
        EXPECT_EQ(seen.err, expected.err);
        EXPECT_EQ(seen.files, expected.files);
      }
    }
  }
}

/// Coins may hold out all rows, or none: an empty part shows in nothing. The coin of the one row
/// that is left is the same in all runs, and its value between the two shares.
TEST(HoldOutsOfOneRow, ShowInNothingThatLeaves) {
  const std::vector<std::string> figures = {"--holdout-epsilon", "1", "--holdout-delta", "1e-6"};
  for (const Case& of : cases()) {
    static const std::set<std::string> kThese = {
        "dpsgd",    "quantile", "adp",     "adaclip",        "dpis_adaptive",
        "dp_agd",   "outpert",  "objpert", "privgene",       "dp_agd_mini_batch",
        "pca_dpis", "matrix",   "texts",   "units_quantile", "units_dp_agd"};
    if (!kThese.contains(of.name)) continue;
    for (const char* const share : {"0.35", "0.45"}) {
      Case c = of;
      c.flags = with(with(of.flags, figures), {"--holdout", share, "--eval-every", "1"});
      Training training(c, kWays[0]);
      const Seen expected = training.on(data_of(c), images(), false);
      ASSERT_EQ(expected.exits.back(), 0) << c.name << ": " << expected.err;
      Rows one = data_of(c);
      one.resize(1);
      Rows all_of_one_class = data_of(c);
      std::erase_if(all_of_one_class, [](const std::string& row) { return row.ends_with("yes"); });
      for (const Rows& rows : {one, all_of_one_class}) {
        SCOPED_TRACE(std::string(c.name) + ", share " + share + ", " + std::to_string(rows.size()) +
                     " rows");
        fs::remove(training.position());
        const Seen seen = training.on(rows, images(), true);
        EXPECT_EQ(training.differences(), "");
        EXPECT_TRUE(training.all_replayed());
        EXPECT_EQ(seen.exits, expected.exits);
        EXPECT_EQ(seen.out, expected.out);
        EXPECT_EQ(seen.err, expected.err);
        EXPECT_EQ(seen.files, expected.files);
      }
    }
  }
  // Below one share and not below the other: each part was empty once.
  const double coin =
      random_words({Generator::chacha20, coins_of_seed(7), Stream::sampling, 0}, 1)[0] * 0x1p-32;
  EXPECT_GT(coin, 0.35);
  EXPECT_LT(coin, 0.45);
}

/// The same noise on other data would tell the difference of two sums.
TEST(Resume, RefusesEveryOtherTrainingSet) {
  const Way interrupted{"interrupted", {{SIGINT, 2}}};
  for (const Case& c : cases()) {
    if (c.name != std::string("dpsgd") && c.name != std::string("texts") &&
        c.name != std::string("cnn"))
      continue;
    Training training(c, interrupted);
    ASSERT_EQ(training.on(data_of(c), images(), false).exits.back(), 1);
    const auto resume = [&] {
      return run_witnessed(training.work(), kResume, [] { return nullptr; });
    };
    for (const Change& change : kChanges) {
      if (change.malformed) continue;
      Rows rows = data_of(c);
      Images pictures = images();
      change.rows(rows);
      change.pictures(pictures);
      training.write_data(rows, pictures);
      const Ended refused = resume();
      EXPECT_EQ(refused.exit, 2) << c.name << ", " << change.name;
      EXPECT_NE(refused.err.find("expected the training data that the run began with, found other"),
                std::string::npos)
          << c.name << ", " << change.name << ": " << refused.err;
    }
    training.write_data(data_of(c), images());
    EXPECT_EQ(resume().exit, 0) << c.name;
  }
}

}  // namespace
}  // namespace cudp
