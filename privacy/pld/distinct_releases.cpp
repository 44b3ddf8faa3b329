#include "privacy/pld/distinct_releases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "privacy/pld/privacy_loss.hpp"

namespace cudp::privacy::pld {
namespace {

/// `count` releases that are composed as if they were equal. In upper bounds `above` stands for
/// each of them, because it dominates them all; in lower bounds `below` does, because they all
/// dominate it.
struct Group {
  Mechanism above, below;
  std::uint64_t count = 0;
};

/// Returns the group's mechanism if it is a Poisson-sampled Gaussian, otherwise nullptr. Only such
/// mechanisms are merged with similar ones; plain Gaussians count as sampled with rate 1.
const PoissonGaussian* poisson(const Group& group) {
  return std::get_if<PoissonGaussian>(&group.above);
}

/// Adds `count` releases to a group. Returns false, and changes nothing, if their number would
/// overflow.
bool grow(Group& group, std::uint64_t count) {
  if (count > std::numeric_limits<std::uint64_t>::max() - group.count) return false;
  group.count += count;
  return true;
}

std::vector<Group> merge_equal(std::span<const Release> releases) {
  std::vector<Group> groups;
  std::map<std::pair<double, double>, std::size_t> seen;  // indices of Poisson releases
  for (const Release& release : releases) {
    if (releases_nothing(release)) continue;
    Mechanism mechanism = release.mechanism;
    if (const auto* gaussian = std::get_if<Gaussian>(&mechanism))
      mechanism = PoissonGaussian{.q = 1.0, .sigma = gaussian->sigma};
    if (const auto* epoch = std::get_if<AllocatedGaussian>(&mechanism);
        epoch != nullptr && epoch->steps == 1)
      mechanism = PoissonGaussian{.q = 1.0, .sigma = epoch->sigma};
    if (const auto* p = std::get_if<PoissonGaussian>(&mechanism)) {
      const auto [entry, added] = seen.try_emplace({p->q, p->sigma}, groups.size());
      if (!added && grow(groups[entry->second], release.count)) continue;
      entry->second = groups.size();
    } else {
      const auto same = std::find_if(groups.begin(), groups.end(),
                                     [&](const Group& group) { return group.above == mechanism; });
      if (same != groups.end() && grow(*same, release.count)) continue;
    }
    groups.push_back({mechanism, mechanism, release.count});
  }
  return groups;
}

/// Merges groups of Poisson-sampled releases with similar rate and noise, until at most max_groups
/// groups are left. Releases are similar if the logarithms of rate and noise lie in the same cell
/// of a grid, whose cells are enlarged step by step.
std::vector<Group> coarsen(const std::vector<Group>& groups, std::size_t max_groups) {
  for (double cell = 1e-4;; cell *= 1.3) {
    std::vector<Group> result;
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> cells;
    for (const Group& group : groups) {
      const PoissonGaussian* p = poisson(group);
      if (p == nullptr) {
        result.push_back(group);
        continue;
      }
      const auto at = [cell](double x) {
        return static_cast<std::int64_t>(std::floor(std::log(x) / cell));
      };
      const auto [entry, added] = cells.try_emplace({at(p->q), at(p->sigma)}, result.size());
      if (added || !grow(result[entry->second], group.count)) {
        entry->second = result.size();
        result.push_back(group);
        continue;
      }
      Group& into = result[entry->second];
      auto& above = std::get<PoissonGaussian>(into.above);
      auto& below = std::get<PoissonGaussian>(into.below);
      above = {.q = std::fmax(above.q, p->q), .sigma = std::fmin(above.sigma, p->sigma)};
      below = {.q = std::fmin(below.q, p->q), .sigma = std::fmax(below.sigma, p->sigma)};
    }
    const bool others_alone = cells.size() <= 1;
    if (result.size() <= max_groups || others_alone) return result;
  }
}

const AllocatedGaussian* allocated(const Mechanism& mechanism) {
  const auto* epoch = std::get_if<AllocatedGaussian>(&mechanism);
  return epoch != nullptr && epoch->steps > 1 ? epoch : nullptr;
}

}  // namespace

double allocated_epochs(std::span<const Release> releases) {
  double count = 0.0;
  for (const Release& release : releases)
    if (allocated(release.mechanism) != nullptr) count += static_cast<double>(release.count);
  return count;
}

std::vector<DistinctLoss> distinct_losses(std::span<const Release> releases, Change change,
                                          std::uint64_t k, std::size_t max_groups,
                                          const AllocationGrid& grid, bool from_below) {
  std::vector<Group> groups = merge_equal(releases);
  if (groups.size() > max_groups) groups = coarsen(groups, max_groups);
  std::vector<DistinctLoss> losses;
  losses.reserve(groups.size());
  for (const Group& group : groups) {
    if (const AllocatedGaussian* epoch = allocated(group.above)) {
      const PrivacyLoss none{.parts = {}, .atoms = {{0.0, 1.0}}, .infinite = 0.0};
      losses.push_back(
          {.above = allocation_loss(*epoch, change, k, Side::above, grid),
           .below = from_below ? allocation_loss(*epoch, change, k, Side::below, grid) : none,
           .same = false,
           .count = group.count});
      continue;
    }
    const bool same = group.above == group.below;
    losses.push_back({.above = known_privacy_loss(group.above, change, k),
                      .below = same ? PrivacyLoss{} : known_privacy_loss(group.below, change, k),
                      .same = same,
                      .count = group.count});
  }
  return losses;
}

}  // namespace cudp::privacy::pld
