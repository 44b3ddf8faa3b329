#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "kernels/common/simd_level.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/cli/answer.hpp"
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
    names += (names.empty() ? "" : ", ") + d.name + " (" + d.compute_capability() + ", " +
             std::to_string(d.memory >> 30) + " GiB)";
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
  CLI::App* command = app.add_subcommand("info", "Version, backends and devices");
  command->footer(kInfoExamples);
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback([&body, json] {
    body = [json] {
      print(describe(), *json);
      return 0;
    };
  });
}

}  // namespace cudp
