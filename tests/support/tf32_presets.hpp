#pragma once
// Trainings of a few steps with the presets of small networks in TF32, CUDA's default, compared
// with the CPU's.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "privacy/transcript/records.hpp"
#include "runtime/data/glyphs.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/test_files.hpp"

namespace cudp::cases {

struct Tf32Preset {
  const char* preset;
  const char* data;  ///< folder of the shared data
};
inline constexpr Tf32Preset kTf32Presets[] = {
    {"mnist-cnn", "mnist"}, {"fashion-cnn", "fashion-mnist"}, {"mnist-hf", "mnist"}};
inline std::string name_of_preset(const testing::TestParamInfo<Tf32Preset>& info) {
  std::string name = info.param.preset;
  name.replace(name.find('-'), 1, "_");
  return name;
}

/// Writes `folder`/images: two files of images of 28 x 28 bytes and their labels.
inline void write_images(const std::filesystem::path& folder, const std::string& prefix,
                         const std::string& images, const std::string& labels) {
  const auto count = static_cast<std::uint32_t>(labels.size());
  std::filesystem::create_directories(folder / "images");
  write_text(folder / "images" / (prefix + "-images-idx3-ubyte"),
             idx_images(count, 28, 28, images));
  write_text(folder / "images" / (prefix + "-labels-idx1-ubyte"), idx_labels(count, labels));
}
/// Writes `count` glyphs, from number `first` on, as such files.
inline void write_glyphs(const std::filesystem::path& folder, const std::string& prefix,
                         std::uint32_t first, std::uint32_t count) {
  const Dataset d = make_glyphs(1, first, count);
  const auto bytes = [](const auto& v) {
    return std::string(reinterpret_cast<const char*>(v.data()), v.size());
  };
  write_images(folder, prefix, bytes(d.bytes), bytes(d.labels));
}

/// Writes `folder`/images: the first images of the preset's data set, as its files have them, or
/// where these are missing the first glyphs.
inline void write_first_images(const std::filesystem::path& folder, const Tf32Preset& p) {
  constexpr std::uint32_t kTest = 4, kTrain = 24;
  for (const bool test : {false, true}) {
    const std::uint32_t count = test ? kTest : kTrain;
    const std::string prefix = test ? "t10k" : "train";
    const auto first_of = [&](const char* name, std::size_t header, std::size_t bytes) {
      const auto file = shared_file("data") / p.data / (prefix + name + ".gz");
      std::string content(header + bytes, '\0');
      gzFile from = gzopen(file.c_str(), "rb");
      if (from == nullptr) return std::string();
      const int n = gzread(from, content.data(), static_cast<unsigned>(content.size()));
      gzclose(from);
      return n == static_cast<int>(content.size()) ? content.substr(header) : std::string();
    };
    const std::size_t pixels = std::size_t{count} * 28 * 28;
    const std::string images = first_of("-images-idx3-ubyte", 16, pixels);
    const std::string labels = first_of("-labels-idx1-ubyte", 8, count);
    if (images.empty() || labels.empty())
      write_glyphs(folder, prefix, test ? kTrain : 0, count);
    else
      write_images(folder, prefix, images, labels);
  }
}

/// At the presets' own rates the noise of so small a batch would take weights far away.
inline Arguments tf32_training(const Tf32Preset& p, const std::string& out) {
  return {"train",    "--preset", p.preset, "--dataset", "images", "--device",
          "cuda",     "--batch",  "5",      "--epochs",  "1",      "--seed",
          "7",        "--out",    out,      "--threads", "1",      "--feature-cache",
          "features", "--lr",     "0.01"};
}

/// Requires the same batches and releases but for their numbers, which `compare` gets, of the one
/// and of the other.
template <class Compare>
void expect_same_records(const std::vector<transcript::Record>& cpu,
                         const std::vector<transcript::Record>& cuda, const Compare& compare) {
  ASSERT_EQ(cpu.size(), cuda.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    ASSERT_EQ(cpu[i].index(), cuda[i].index());
    if (const auto* b = std::get_if<transcript::Batch>(&cpu[i])) {
      EXPECT_EQ(b->examples, std::get<transcript::Batch>(cuda[i]).examples);
    }
    const auto* const r = std::get_if<transcript::Release>(&cpu[i]);
    if (r == nullptr) continue;
    const auto& other = std::get<transcript::Release>(cuda[i]);
    EXPECT_EQ(r->name, other.name);
    EXPECT_EQ(r->grid, other.grid);
    EXPECT_EQ(r->noise_std, other.noise_std);
    EXPECT_EQ(r->charged, other.charged);
    ASSERT_EQ(r->sums.size(), other.sums.size());
    compare(*r, other);
  }
}

/// Requires the same batches and releases, and sums of gradients that differ by TF32's error and by
/// more than float32's.
inline void expect_tf32_sums(const std::vector<transcript::Record>& cpu,
                             const std::vector<transcript::Record>& cuda) {
  int steps = 0;
  double largest = 0.0;
  expect_same_records(cpu, cuda, [&](const auto& r, const auto& other) {
    if (r.sums.size() < 1000) return;  // not of gradients
    double error = 0.0, size = 0.0;
    for (std::size_t j = 0; j < r.sums.size(); ++j) {
      const auto want = static_cast<double>(r.sums[j]);
      error += std::pow(static_cast<double>(other.sums[j]) - want, 2);
      size += want * want;
    }
    if (size == 0.0) return;  // a batch of nobody
    largest = std::fmax(largest, std::sqrt(error / size));
    ++steps;
  });
  EXPECT_GE(steps, 3);
  EXPECT_LE(largest, 2e-3);
  EXPECT_GE(largest, 1e-5) << "was it TF32?";
}

}  // namespace cudp::cases
