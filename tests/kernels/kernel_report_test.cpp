// What nvcc says of the kernels that the CUDA backend is built from: registers, spills and shared
// memory, for every architecture it is built for. The build keeps it, a file for each source.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <cxxabi.h>
#include <gtest/gtest.h>

#include "kernels/products/patch_gradient.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

struct Usage {
  int registers = -1, stack = -1, spilled = -1;
  int shared = 0;  // bytes, static
};

std::string readable(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  // Kernels and their tiles without the namespace.
  return status == 0 ? std::regex_replace(name.get(), std::regex("cudp::on_device::"), "")
                     : mangled;
}

int number(const std::string& line, const char* pattern) {
  std::smatch found;
  return std::regex_search(line, found, std::regex(pattern)) ? std::stoi(found[1]) : -1;
}

using Kernels = std::map<std::string, Usage>;

/// By architecture, then by kernel.
void parse(std::istream& report, std::map<std::string, Kernels>& all) {
  Usage* now = nullptr;
  std::smatch found;
  for (std::string line; std::getline(report, line);) {
    if (std::regex_search(line, found,
                          std::regex("Compiling entry function '([^']*)' for '([^']*)'")))
      now = &all[found[2]][readable(found[1])];
    if (now == nullptr) continue;
    if (line.find("stack frame") != std::string::npos) {
      now->stack = number(line, "([0-9]+) bytes stack frame");
      now->spilled =
          number(line, "([0-9]+) bytes spill stores") + number(line, "([0-9]+) bytes spill loads");
    }
    if (line.find("Used ") != std::string::npos) {
      now->registers = number(line, "Used ([0-9]+) registers");
      now->shared = std::max(0, number(line, "([0-9]+) bytes smem"));
    }
  }
}

/// Blocks of `threads` that a multiprocessor's 65,536 registers hold; a warp takes them by 256.
int blocks_by_registers(int registers, unsigned threads) {
  const int a_warp = (registers * 32 + 255) / 256 * 256;
  return 65536 / (a_warp * static_cast<int>((threads + 31) / 32));
}

/// What is stated above the kernels: threads of a block, and how many blocks a multiprocessor holds
/// at once. The last entry is for all that are not named: 1024 threads in any blocks.
struct Stated {
  const char* kernel;
  unsigned threads;
  int blocks;
};
constexpr Stated kStated[] = {
    {"TextPlan<", 256, 1},
    {"fused_kernel<", 512, 1},
    {"dense_rows_kernel<", 512, 1},
    {"product_kernel<FloatTile<16, 32, 64>", 64, 4},
    {"product_kernel<FloatTile<16, 8, 64>", 64, 8},
    {"product_kernel<FloatTile<32, 8, 64>", 64, 8},
    {"product_kernel<FloatTile<64, 8, 64>", 128, 4},
    {"weight_gradient_norm_kernel<FloatTile<16, 8, 64>", 64, 8},
    {"weight_gradient_norm_kernel<FloatTile<32, 8, 64>", 64, 8},
    {"weight_gradient_norm_kernel<FloatTile<64, 8, 64>", 128, 4},
    {"weight_gradient_rows_kernel<FloatTile<16, 8, 64>", 64, 8},
    {"weight_gradient_rows_kernel<FloatTile<32, 8, 64>", 64, 8},
    {"weight_gradient_rows_kernel<FloatTile<64, 8, 64>", 128, 4},
    {"weight_gradient_sum_kernel<FloatTile<16, 8, 64>", 64, 6},
    {"weight_gradient_sum_kernel<FloatTile<32, 8, 64>", 64, 6},
    {"weight_gradient_sum_kernel<FloatTile<64, 8, 64>", 128, 3},
    {"product_kernel<TensorTile<16, 32>", 64, 4},
    {"product_kernel<TensorTile<16, 16>", 64, 7},
    {"product_kernel<TensorTile<32, 8>", 64, 6},
    {"product_kernel<TensorTile<64, 8>", 128, 3},
    {"weight_gradient_norm_kernel<TensorTile<16, 16>", 64, 7},
    {"weight_gradient_norm_kernel<TensorTile<32, 16>", 64, 6},
    {"weight_gradient_norm_kernel<TensorTile<64, 16>", 128, 3},
    {"weight_gradient_rows_kernel<TensorTile<16, 16>", 64, 7},
    {"weight_gradient_rows_kernel<TensorTile<32, 16>", 64, 6},
    {"weight_gradient_rows_kernel<TensorTile<64, 16>", 128, 3},
    {"weight_gradient_sum_kernel<TensorTile<16, 16>", 64, 6},
    {"weight_gradient_sum_kernel<TensorTile<32, 16>", 64, 4},
    {"weight_gradient_sum_kernel<TensorTile<64, 16>", 128, 2},
    {"patch_gradient_", kPatchThreads, 2},
    {"patch_product_kernel<PixelTile<32>", 128, 4},
    {"patch_product_kernel<PixelTile<64>", 256, 2},
    {"linear_scores_kernel", 256, 6},
    {"linear_derivatives_kernel", 256, 6},
    {"linear_sum_kernel", 256, 5},
    {"linear_losses_kernel", 256, 6},
    {"linear_gather_kernel", 256, 6},
    {"sequence_gradient_norm_kernel<FloatTile<64, 8, 64>", 128, 4},
    {"sequence_gradient_norm_kernel<FloatTile<32, 8, 64>", 64, 8},
    {"sequence_gradient_norm_kernel<FloatTile<64, 8, 32>", 64, 8},
    {"sequence_gradient_rows_kernel<FloatTile<64, 8, 64>", 128, 4},
    {"sequence_gradient_rows_kernel<FloatTile<32, 8, 64>", 64, 8},
    {"sequence_gradient_rows_kernel<FloatTile<64, 8, 32>", 64, 8},
    {"sequence_gradient_sum_kernel<FloatTile<64, 8, 64>", 128, 3},
    {"sequence_gradient_sum_kernel<FloatTile<32, 8, 64>", 64, 6},
    {"sequence_gradient_sum_kernel<FloatTile<64, 8, 32>", 64, 6},
    {"sequence_gradient_norm_kernel<HalfTile", 128, 4},
    {"sequence_gradient_rows_kernel<HalfTile", 128, 4},
    {"sequence_gradient_sum_kernel<HalfTile", 128, 3},
    {"half_recurrent_kernel<LstmCell, true>", 416, 1},
    {"half_recurrent_kernel<GruCell, true>", 416, 1},
    {"half_recurrent_backward_kernel<LstmCell, true>", 416, 1},
    {"half_recurrent_backward_kernel<GruCell, true>", 416, 1},
    {"half_recurrent_", 256, 1},
    {"recurrent_kernel<", 256, 2},
    {"recurrent_backward_kernel<", 256, 2},
    {"text_product_kernel<true>", 128, 3},
    {"text_product_kernel<false>", 128, 4},
    {"embed_kernel", 256, 6},
    {"embedding_gradient_kernel", 256, 6},
    {"mean_over_time_kernel", 128, 12},
    {"text_states_kernel", 128, 12},
    {"mean_over_time_backward_kernel", 128, 12},
    {"finish_kernel", 64, 10},
    {"finish_slabs_kernel", 128, 5},
    {"finish_pairs_kernel", 64, 14},
    {"allocate_kernel", 256, 4},
    {"allocated_flags_kernel", 256, 8},
    {"", 1024, 1},
};
const Stated& stated_for(const std::string& kernel) {
  const Stated* s = kStated;
  while (kernel.find(s->kernel) == std::string::npos) ++s;
  return *s;
}

class KernelReport : public testing::TestWithParam<const char*> {};

TEST_P(KernelReport, NothingSpillsAndOccupancyIsAsStated) {
  if (kernel_reports().empty()) GTEST_SKIP() << "built without nvcc";
  std::map<std::string, Kernels> reported;
  for (const auto& file : std::filesystem::directory_iterator(kernel_reports())) {
    std::ifstream report(file.path());
    parse(report, reported);
  }
  ASSERT_FALSE(reported.empty());
  const Kernels& kernels = reported[GetParam()];
  if (kernels.empty()) GTEST_SKIP() << "not built for " << GetParam();
  int fused_kernels = 0;
  int linear = 0;
  int tensor = 0;
  int patch = 0;
  int texts = 0;
  for (const auto& [name, u] : kernels) {
    for (const char* fused : {"fused_kernel<", "dense_rows_kernel"})
      fused_kernels += name.find(fused) != std::string::npos;
    linear += name.find(" linear_") != std::string::npos || name.starts_with("linear_");
    tensor += name.find("TensorTile<") != std::string::npos;
    for (const char* patched : {"PatchTile<", "PixelTile<"})
      patch += name.find(patched) != std::string::npos;
    for (const char* part :
         {"sequence_gradient_", "recurrent_", "embed", "mean_over_time", "text_"})
      texts += name.find(part) != std::string::npos;
    // kernels/README.md: the sums of 512 threads leave few registers of 128; those of 256 threads,
    // with a text's gradient, few of 255.
    const bool may_spill = name.find("fused_kernel<") != std::string::npos ||
                           name.find("TextPlan<") != std::string::npos;
    // Of 64 units in one direction, 62 sums do not fit, which are read and written once a text.
    const bool may_spill_sums =
        name.find("TextPlan<") != std::string::npos && name.find("OneWay") != std::string::npos;
    EXPECT_LE(u.spilled, may_spill_sums ? 1024 : may_spill ? 256 : 0) << name;
    EXPECT_LE(u.stack, may_spill_sums ? 256 : may_spill ? 64 : 0) << name;
    ASSERT_GT(u.registers, 0) << name;
    const Stated& s = stated_for(name);
    EXPECT_GE(blocks_by_registers(u.registers, s.threads), s.blocks)
        << name << ": " << u.registers << " registers";
    // 100 KB at least, of which the device keeps one for every block.
    EXPECT_LE((u.shared + 1024) * s.blocks, 100 * 1024) << name << ": " << u.shared << " bytes";
  }
  EXPECT_GE(kernels.size(), 40u);
  EXPECT_EQ(fused_kernels, 22);
  EXPECT_EQ(linear, 5);
  EXPECT_EQ(tensor, 13);
  EXPECT_EQ(patch, 6);
  EXPECT_EQ(texts, 37);
}
INSTANTIATE_TEST_SUITE_P(All, KernelReport, testing::Values("sm_80", "sm_89", "sm_90", "sm_100"),
                         [](const auto& info) { return std::string(info.param); });

TEST(KernelReport, IsReadAsPtxasWritesIt) {
  std::istringstream report(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_ZN4cudp1fEv' for 'sm_90'\n"
      "ptxas info    : Function properties for _ZN4cudp1fEv\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 5632 bytes smem\n"
      "ptxas info    : Compiling entry function 'plain' for 'sm_90'\n"
      "ptxas info    : Function properties for plain\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 255 registers, 368 bytes cmem[0]\n");
  std::map<std::string, Kernels> reported;
  parse(report, reported);
  const Kernels& kernels = reported.at("sm_90");
  ASSERT_EQ(kernels.size(), 2u);
  const Usage& f = kernels.at("cudp::f()");
  EXPECT_EQ(f.registers, 40);
  EXPECT_EQ(f.stack, 16);
  EXPECT_EQ(f.spilled, 20);
  EXPECT_EQ(f.shared, 5632);
  EXPECT_EQ(kernels.at("plain").registers, 255);
  EXPECT_EQ(kernels.at("plain").shared, 0);
  EXPECT_EQ(blocks_by_registers(255, 256), 1);
  EXPECT_EQ(blocks_by_registers(128, 256), 2);
  EXPECT_EQ(blocks_by_registers(129, 256), 1);
}

}  // namespace
}  // namespace cudp
