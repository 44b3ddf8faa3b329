#pragma once
// Small data sets that random settings train on: a table of people, their visits and stays, a
// matrix, notes and images, with models for them.
#include <cstdint>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/safetensors.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/small_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp::settings_data {

inline constexpr int kRows = 120;  // of each data set

using small_data::kWords;

inline std::string table_of(std::uint64_t seed, int rows) {
  std::mt19937_64 random(seed);
  std::string text = "age,hours,kind,ill\n";
  for (int i = 0; i < rows; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    text += fmt::format("{},{},{},{}\n", age, hours, "abc"[random() % 3],
                        age + hours > 80 ? "yes" : "no");
  }
  return text;
}

/// Number of rows per patient in the table of visits, which has the same columns; a patient's rows
/// are consecutive.
inline constexpr int kVisits = 5;
inline std::string visit(int row, const std::string& cells) {
  return fmt::format("p{},{}", row / kVisits, cells);
}
inline std::string visits_of(std::uint64_t seed, int rows) {
  std::istringstream all(table_of(seed, rows));
  std::string text;
  int row = -1;
  for (std::string line; std::getline(all, line); ++row)
    text += (row < 0 ? "who," + line : visit(row, line)) + "\n";
  return text;
}

/// Returns a table with the same columns and a number to predict.
inline std::string stays_of(std::uint64_t seed, int rows) {
  std::mt19937_64 random(seed);
  std::string text = "age,hours,kind,days\n";
  for (int i = 0; i < rows; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    text += fmt::format("{},{},{},{}\n", age, hours, "abc"[random() % 3],
                        (age + hours) / 4 + random() % 9);
  }
  return text;
}

/// Matrix of features [rows, 5], with a gap of zeros among them, and its labels.
struct SmallMatrix {
  std::vector<float> features;
  std::vector<std::int64_t> labels;

  std::string x() const { return npy_floats(labels.size(), features); }
  std::string y() const { return npy_labels(labels); }
};

inline SmallMatrix matrix_of(std::uint64_t seed, int rows) {
  std::mt19937_64 random(seed);
  SmallMatrix m;
  for (int i = 0; i < rows; ++i) {
    const auto label = static_cast<std::int64_t>(random() % 2);
    for (int k = 0; k < 5; ++k)
      m.features.push_back(i == 5 ? 0.0f
                                  : static_cast<float>(random() % 200) / 100.0f - 1.0f +
                                        (k == 0 ? static_cast<float>(label) : 0.0f));
    m.labels.push_back(label);
  }
  return m;
}

inline std::string notes_of(std::uint64_t seed, int rows) {
  std::mt19937_64 random(seed);
  std::string text = "note,ill\n";
  for (int i = 0; i < rows; ++i) text += small_data::note_of(random, 12) + "\n";
  return text;
}

inline void write_images(const std::filesystem::path& folder, const std::string& part,
                         std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::string pixels;
  std::string labels;
  for (int i = 0; i < count; ++i) {
    labels += static_cast<char>(random() % 10);
    for (int p = 0; p < 784; ++p) pixels += static_cast<char>(random() % 256);
  }
  small_data::write_grey_images(folder, part, pixels, labels);
}

inline std::string text_model(const char* layer, const char* rate = "") {
  return std::string(R"(name = "notes"
loss = "cross_entropy"
activation = "tanh"
layers = [
  { type = "embedding", name = "words", trainable = true, columns = 6 },
  )") + layer +
         R"(
  { type = "activation" },
  { type = "dense", name = "fc", out = "outputs")" +
         rate +
         R"( },
]
)";
}

/// Writes public weights, small random numbers, of tensors with these names and shapes.
inline void write_weights(const std::filesystem::path& file,
                          const std::vector<std::pair<std::string, std::vector<int>>>& tensors) {
  std::mt19937_64 random(11);
  TensorFile weights;
  for (const auto& [name, shape] : tensors) {
    std::size_t size = 1;
    for (const int d : shape) size *= static_cast<std::size_t>(d);
    weights.tensors.push_back(
        {.name = name, .shape = shape, .offset = weights.values.size(), .size = size});
    for (std::size_t i = 0; i < size; ++i)
      weights.values.push_back(std::uniform_real_distribution<float>(-0.4f, 0.4f)(random));
  }
  write_text(file, encode_safetensors(weights));
}

/// Writes public weights for the models of tables, images and texts.
inline void write_all_weights(const std::filesystem::path& work) {
  for (const auto& [file, hidden] : {std::pair("start-table", 7), std::pair("start-mlp", 1000)})
    write_weights(work / (std::string(file) + ".safetensors"), {{"fc1.weight", {hidden, 5}},
                                                                {"fc1.bias", {hidden}},
                                                                {"fc2.weight", {1, hidden}},
                                                                {"fc2.bias", {1}}});
  write_weights(work / "start-image.safetensors", {{"conv1.weight", {6, 1, 5, 5}},
                                                   {"conv1.bias", {6}},
                                                   {"norm1.weight", {6}},
                                                   {"norm1.bias", {6}},
                                                   {"fc.weight", {10, 96}},
                                                   {"fc.bias", {10}}});
  std::vector<std::pair<std::string, std::vector<int>>> texts = {{"gru.weight_ih_l0", {15, 6}},
                                                                 {"gru.weight_hh_l0", {15, 5}},
                                                                 {"gru.bias_ih_l0", {15}},
                                                                 {"gru.bias_hh_l0", {15}}};
  for (const std::string end : {"_l0", "_l0_reverse"}) {
    texts.insert(texts.end(), {{"lstm.weight_ih" + end, {16, 6}},
                               {"lstm.weight_hh" + end, {16, 4}},
                               {"lstm.bias_ih" + end, {16}},
                               {"lstm.bias_hh" + end, {16}}});
  }
  write_weights(work / "start-notes.safetensors", texts);
}

inline void write_data(const std::filesystem::path& work) {
  std::filesystem::create_directories(work);
  write_text(work / "people.csv", table_of(1, kRows));
  write_text(work / "test.csv", table_of(2, 30));
  write_text(work / "people.csv.schema.toml", R"(name = "people"
columns = [
  {name = "age", kind = "numeric", min = 17, max = 90, fill = 40},
  {name = "hours", kind = "numeric", min = 0, max = 40, fill = 20},
  {name = "kind", kind = "categorical", values = ["a", "b", "c"]},
  {name = "ill", kind = "label", values = ["no", "yes"], fill = "no"},
]
)");
  // The number of used rows is the same.
  write_text(work / "visits.csv", visits_of(1, kRows / 3 * kVisits));
  write_text(work / "visits.csv.schema.toml", R"(name = "visits"
unit = "who"
max_rows = 3
columns = [
  {name = "who", kind = "ignore"},
  {name = "age", kind = "numeric", min = 17, max = 90, fill = 40},
  {name = "hours", kind = "numeric", min = 0, max = 40, fill = 20},
  {name = "kind", kind = "categorical", values = ["a", "b", "c"]},
  {name = "ill", kind = "label", values = ["no", "yes"], fill = "no"},
]
)");
  write_text(work / "stays.csv", stays_of(1, kRows));
  write_text(work / "stays-test.csv", stays_of(2, 30));
  write_text(work / "stays.csv.schema.toml", R"(name = "stays"
columns = [
  {name = "age", kind = "numeric", min = 17, max = 90, fill = 40},
  {name = "hours", kind = "numeric", min = 0, max = 40, fill = 20},
  {name = "kind", kind = "categorical", values = ["a", "b", "c"]},
  {name = "days", kind = "target", min = 0, max = 30, fill = 10},
]
)");
  const SmallMatrix people = matrix_of(7, kRows), test = matrix_of(8, 30);
  write_text(work / "people.npy", people.x());
  write_text(work / "labels.npy", people.y());
  write_text(work / "people.npz", zip({{"x.npy", people.x()}, {"y.npy", people.y()}}));
  write_text(work / "test.npy", test.x());
  write_text(work / "test-labels.npy", test.y());
  write_text(work / "notes.csv", notes_of(3, kRows));
  write_text(work / "notes-test.csv", notes_of(4, 30));
  write_text(work / "notes.csv.schema.toml", R"(name = "notes"
columns = [
  {name = "note", kind = "text"},
  {name = "ill", kind = "label", values = ["no", "yes"], fill = "no"},
]
)");
  std::string words;
  std::string vectors;
  std::mt19937_64 random(5);
  for (const char* word : kWords) {
    words += std::string(word) + "\n";
    vectors += word;
    for (int i = 0; i < 6; ++i)
      vectors += fmt::format(" {:.3f}", std::uniform_real_distribution<>(-1.0, 1.0)(random));
    vectors += '\n';
  }
  write_text(work / "words.txt", words);
  TensorFile tensors;
  for (const char* name : {"a", "b"}) {
    const std::size_t size = 5 * std::size(kWords);
    tensors.tensors.push_back({.name = name,
                               .shape = {static_cast<int>(std::size(kWords)), 5},
                               .offset = tensors.values.size(),
                               .size = size});
    for (std::size_t i = 0; i < size; ++i)
      tensors.values.push_back(std::uniform_real_distribution<float>(-1.0f, 1.0f)(random));
  }
  write_text(work / "vectors.safetensors", encode_safetensors(tensors));
  write_text(work / "vectors.txt", vectors);
  write_images(work / "images", "train", 6, kRows);
  write_images(work / "images", "t10k", 7, 20);
  write_text(work / "text-gru.toml", text_model(R"({ type = "gru", name = "gru", hidden = 5 },)"));
  write_text(work / "text-lstm.toml",
             text_model(R"({ type = "lstm", name = "lstm", hidden = 4, bidirectional = true },)"));
  write_text(work / "text-mean.toml", text_model(R"({ type = "mean" },)", ", lr_scale = 2"));
  write_text(work / "image.toml", R"(name = "image"
loss = "cross_entropy"
activation = "relu"
layers = [
  { type = "conv2d", name = "conv1", out = 6, kernel = 5, stride = 3, pad = 1 },
  { type = "groupnorm", name = "norm1", groups = 3 },
  { type = "activation" },
  { type = "avgpool", kernel = 2, stride = 2 },
  { type = "dense", name = "fc", out = "outputs" },
]
)");
  write_text(work / "table.toml", R"(name = "table"
loss = "cross_entropy"
activation = "tanh"
layers = [
  { type = "dense", name = "fc1", out = 7 },
  { type = "activation" },
  { type = "dense", name = "fc2", out = "outputs" },
]
)");
  write_all_weights(work);
}

}  // namespace cudp::settings_data
