#pragma once
// Faults that the interpreter finds in a few lines of PTX.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/ptx_machine.hpp"

namespace cudp::ptx {

inline constexpr u64 kSeeds = 8;

struct Shape {
  Dim grid, block;
  u32 dynamic_shared = 0;
  u64 words = 4096;     ///< size of the memory that is the only parameter [words]
  bool written = true;  ///< its words are then 0, 1, 2, ...
  u32 launches = 1;
};

/// Runs a kernel with this body. Returns the message of its fault; empty if it has none. %rd1 is
/// the memory's address, %r1 the thread, %rd3 the address of the thread's word.
inline std::string fault_of(const std::string& body, const Shape& shape = {}, u64 seed = 1,
                            const std::string& directives = "", const std::string& before = "") {
  const std::string text = one_kernel(
      "ld.param.u64 %rd1, [k_param_0];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n" +
          body,
      1, directives, before);
  try {
    Module module(text);
    Machine machine(seed);
    Kernel& kernel = *module.find("k");
    std::vector<u32> values(shape.words);
    for (u32 k = 0; k < shape.words; ++k) values[k] = k;
    const u64 address = shape.written ? machine.upload(values) : machine.allocate(4 * shape.words);
    for (u32 n = 0; n < shape.launches; ++n)
      machine.run(kernel, shape.grid, shape.block, {address}, shape.dynamic_shared);
    for (const auto& [note, count] : machine.interpreter().notes()) return "note: " + note;
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

/// Expects, for every seed, that `wrong` is found wrong for this reason, and that `right` is found
/// right.
inline void expect_found(const std::string& wrong, const std::string& right,
                         const std::string& reason, const Shape& shape = {}) {
  for (u64 seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_NE(fault_of(wrong, shape, seed).find(reason), std::string::npos)
        << fault_of(wrong, shape, seed);
    EXPECT_EQ(fault_of(right, shape, seed), "");
  }
}

inline Shape threads(u32 count) { return {{1, 1, 1}, {count, 1, 1}}; }

}  // namespace cudp::ptx
