#include "runtime/base/error.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {

std::unique_ptr<CpuLayer> make_layer(const Embedding&) { throw InputError("to be written"); }
std::unique_ptr<CpuLayer> make_layer(const Recurrent&) { throw InputError("to be written"); }
std::unique_ptr<CpuLayer> make_layer(const MeanOverTime&) { throw InputError("to be written"); }

}  // namespace cudp::cpu
