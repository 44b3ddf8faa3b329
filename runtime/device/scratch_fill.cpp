#include "runtime/device/scratch_fill.hpp"

namespace cudp {
namespace {

std::optional<float>& stored() {
  static std::optional<float> value;
  return value;
}

}  // namespace

std::optional<float> scratch_fill() { return stored(); }
void set_scratch_fill(std::optional<float> value) { stored() = value; }

}  // namespace cudp
