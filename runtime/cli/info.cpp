#include <chrono>
#include <cstdint>
#include <string>

#include <spdlog/fmt/fmt.h>

#include "kernels/common/simd_level.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/device/cuda/nccl.hpp"
#include "runtime/ranks/mpi.hpp"

namespace cudp {
namespace {

constexpr const char* kInfoExamples = R"(Examples:
  cudp info
  cudp info --json
)";

/// The processes (ranks) that were started together: their number, their nodes, and how they
/// communicate.
struct Together {
  int ranks = 1;
  std::int64_t nodes = 1;
  std::string transport;
};

Together describe_together(Ranks& ranks) {
  std::int64_t nodes = ranks.local_rank() == 0 ? 1 : 0;
  ranks.sum("nodes", {&nodes, 1});
  const std::string mpi = mpi_library();
  return {.ranks = ranks.size(),
          .nodes = nodes,
          .transport = ranks.alone() ? "--ranks N on one node, " + (mpi.empty() ? "no MPI" : mpi)
                                     : ranks.transport()};
}

/// Returns a text that states where the sums of a training with several ranks (processes) are added
/// up: on the host, or on the devices with NCCL. has_devices: whether this machine has CUDA
/// devices.
std::string sums_of_ranks(bool has_devices) {
  if (!has_devices) return "the host";
  try {
    return cuda::nccl_name(cuda::nccl_version()) + ", where all ranks have it";
  } catch (const Error& e) {
    return std::string("the host (") + e.what() + ")";
  }
}

Answer describe(Ranks& ranks) {
  const BuildInfo build = build_info();
  const Together together = describe_together(ranks);
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
  const std::string sums = sums_of_ranks(!devices.empty());
  return {.json = {{"version", build.version},
                   {"commit", build.commit},
                   {"compiler", build.compiler},
                   {"backends", backends},
                   {"devices", devices},
                   {"simd", simd},
                   {"threads", threads},
                   {"ranks", together.ranks},
                   {"nodes", together.nodes},
                   {"transport", together.transport},
                   {"sums_of_ranks", sums}},
          .rows = {{"version", build.version},
                   {"commit", build.commit},
                   {"compiler", build.compiler},
                   {"backends", built_with_cuda() ? "cpu, cuda" : "cpu"},
                   {"CUDA devices", names.empty() ? "none" : names},
                   {"SIMD level", simd},
                   {"threads", std::to_string(threads)},
                   {"ranks", fmt::format("{} on {} node{}; {}", together.ranks, together.nodes,
                                         together.nodes == 1 ? "" : "s", together.transport)},
                   {"sums of ranks", sums}}};
}

}  // namespace

void add_info_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "info",
               .description = "Version, backends and devices",
               .examples = kInfoExamples,
               .options = {json_option()},
               .run = [](const TrainConfig& c) {
                 const auto several = mpi_ranks(std::chrono::minutes(1));
                 Ranks& ranks = several != nullptr ? *several : alone();
                 const Answer answer = describe(ranks);
                 if (ranks.leads()) print(answer, c.json);
                 return 0;
               }});
}

}  // namespace cudp
