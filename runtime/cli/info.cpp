#include <string>

#include "kernels/common/simd_level.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/device/cuda/devices.hpp"

namespace cudp {
namespace {

constexpr const char* kInfoExamples = R"(Examples:
  cudp info
  cudp info --json
)";

Answer describe() {
  const BuildInfo build = build_info();
  const std::string simd(simd_name(best_simd_level()));
  const int threads = available_cores();
  auto backends = nlohmann::ordered_json::array({"cpu"});
  if (built_with_cuda()) backends.push_back("cuda");
  auto devices = nlohmann::ordered_json::array();
  std::string names;
  for (const DeviceInfo& d : cuda_devices()) {
    devices.push_back({{"name", d.name},
                       {"compute_capability", d.compute_capability()},
                       {"memory_bytes", d.memory},
                       {"multiprocessors", d.multiprocessors}});
    names += (names.empty() ? "" : ", ") + ("cuda:" + std::to_string(devices.size() - 1)) + ": " +
             d.name + " (" + d.compute_capability() + ", " + std::to_string(d.memory >> 30) +
             " GiB)";
  }
  return {.json = {{"version", build.version},
                   {"commit", build.commit},
                   {"compiler", build.compiler},
                   {"backends", backends},
                   {"devices", devices},
                   {"simd", simd},
                   {"threads", threads}},
          .rows = {{"version", build.version},
                   {"commit", build.commit},
                   {"compiler", build.compiler},
                   {"backends", built_with_cuda() ? "cpu, cuda" : "cpu"},
                   {"CUDA devices", names.empty() ? "none" : names},
                   {"SIMD level", simd},
                   {"threads", std::to_string(threads)}}};
}

}  // namespace

void add_info_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "info",
               .description = "Version, backends and devices",
               .examples = kInfoExamples,
               .options = {json_option()},
               .run = [](const TrainConfig& c) {
                 print(describe(), c.json);
                 return 0;
               }});
}

}  // namespace cudp
