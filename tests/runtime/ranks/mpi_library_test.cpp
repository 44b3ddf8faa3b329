// What mpi_library.hpp states about the two binary interfaces of MPI, compared with an installed
// mpi.h. Nothing is linked: what a macro stands for is compared as text.
#include "runtime/ranks/mpi_library.hpp"

#include <cstddef>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#ifdef CUDP_TESTS_HAVE_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace cudp {
namespace {

#ifdef CUDP_TESTS_HAVE_MPI

#define CUDP_AS_TEXT(...) #__VA_ARGS__
#define CUDP_TEXT_OF(...) CUDP_AS_TEXT(__VA_ARGS__)

#ifdef OPEN_MPI
using Installed = OpenMpi;
#else
using Installed = Mpich;
#endif

TEST(MpiLibrary, HasTheConstantsOfMpiH) {
  EXPECT_EQ(Installed::kAnySource, MPI_ANY_SOURCE);
  EXPECT_EQ(Installed::kSharedMemory, MPI_COMM_TYPE_SHARED);
  EXPECT_EQ(MpiFunctions<Installed>::in_place(), MPI_IN_PLACE);
  EXPECT_EQ(static_cast<void*>(MpiFunctions<Installed>::no_status()),
            static_cast<void*>(MPI_STATUS_IGNORE));
  EXPECT_EQ(MpiFunctions<Installed>::kFunneled, MPI_THREAD_FUNNELED);
  EXPECT_GE(Installed::kMaxVersion, std::size_t{MPI_MAX_LIBRARY_VERSION_STRING});
}

TEST(MpiLibrary, HasTheStatusOfMpiH) {
  EXPECT_EQ(sizeof(Installed::Status), sizeof(MPI_Status));
  EXPECT_EQ(offsetof(Installed::Status, source), offsetof(MPI_Status, MPI_SOURCE));
  EXPECT_EQ(offsetof(Installed::Status, tag), offsetof(MPI_Status, MPI_TAG));
  EXPECT_EQ(offsetof(Installed::Status, error), offsetof(MPI_Status, MPI_ERROR));
}

TEST(MpiLibrary, HasTheHandlesOfMpiH) {
  for (const std::size_t size : {sizeof(MPI_Comm), sizeof(MPI_Datatype), sizeof(MPI_Op),
                                 sizeof(MPI_Request), sizeof(MPI_Info)})
    EXPECT_EQ(size, sizeof(Installed::Handle));
#ifdef OPEN_MPI
  const auto stands_for = [](const std::string& text, const std::string& symbol) {
    return text.find("(" + symbol + ")") != std::string::npos;
  };
  EXPECT_TRUE(stands_for(CUDP_TEXT_OF(MPI_COMM_WORLD), "ompi_mpi_comm_world"));
  EXPECT_TRUE(stands_for(CUDP_TEXT_OF(MPI_COMM_NULL), "ompi_mpi_comm_null"));
  EXPECT_TRUE(stands_for(CUDP_TEXT_OF(MPI_REQUEST_NULL), "ompi_request_null"));
  EXPECT_TRUE(stands_for(CUDP_TEXT_OF(MPI_INFO_NULL), "ompi_mpi_info_null"));
  EXPECT_TRUE(stands_for(CUDP_TEXT_OF(MPI_BYTE), "ompi_mpi_byte"));
  EXPECT_TRUE(stands_for(CUDP_TEXT_OF(MPI_INT), "ompi_mpi_int"));
  EXPECT_TRUE(stands_for(CUDP_TEXT_OF(MPI_UINT64_T), "ompi_mpi_uint64_t"));
  EXPECT_TRUE(stands_for(CUDP_TEXT_OF(MPI_SUM), "ompi_mpi_op_sum"));
  EXPECT_TRUE(stands_for(CUDP_TEXT_OF(MPI_MIN), "ompi_mpi_op_min"));
#else
  const Mpich handles{LazyLibrary("C", "libc.so.6")};
  EXPECT_EQ(handles.world, MPI_COMM_WORLD);
  EXPECT_EQ(handles.no_communicator, MPI_COMM_NULL);
  EXPECT_EQ(handles.no_request, MPI_REQUEST_NULL);
  EXPECT_EQ(handles.no_info, MPI_INFO_NULL);
  EXPECT_EQ(handles.byte, MPI_BYTE);
  EXPECT_EQ(handles.integer, MPI_INT);
  EXPECT_EQ(handles.uint64, MPI_UINT64_T);
  EXPECT_EQ(handles.sum, MPI_SUM);
  EXPECT_EQ(handles.min, MPI_MIN);
#endif
}

/// Returns whether a parameter of mpi.h's has the type A here, where all handles are of one type.
template <class A, class B>
constexpr bool same_parameter() {
  constexpr bool theirs_is_handle = std::is_same_v<B, MPI_Comm> ||
                                    std::is_same_v<B, MPI_Datatype> || std::is_same_v<B, MPI_Op> ||
                                    std::is_same_v<B, MPI_Request> || std::is_same_v<B, MPI_Info>;
  constexpr bool theirs_is_pointer =
      std::is_same_v<B, MPI_Comm*> || std::is_same_v<B, MPI_Request*>;
  if constexpr (std::is_same_v<A, B>) return true;
  if constexpr (theirs_is_handle) return std::is_same_v<A, Installed::Handle>;
  if constexpr (theirs_is_pointer) return std::is_same_v<A, Installed::Handle*>;
  return std::is_same_v<B, MPI_Status*> && std::is_same_v<A, Installed::Status*>;
}
template <class Mine, class Theirs>
constexpr bool agree = false;
template <class... A, class... B>
requires(sizeof...(A) == sizeof...(B)) constexpr bool agree<int (*)(A...), int (*)(B...)> =
    (same_parameter<A, B>() && ...);

TEST(MpiLibrary, HasTheFunctionsOfMpiH) {
#define CUDP_AGREE(mine, theirs) \
  EXPECT_TRUE((agree<decltype(MpiFunctions<Installed>::mine), decltype(&(theirs))>)) << #theirs
  CUDP_AGREE(init_thread, MPI_Init_thread);
  CUDP_AGREE(finalize, MPI_Finalize);
  CUDP_AGREE(abort, MPI_Abort);
  CUDP_AGREE(comm_rank, MPI_Comm_rank);
  CUDP_AGREE(comm_size, MPI_Comm_size);
  CUDP_AGREE(comm_split_type, MPI_Comm_split_type);
  CUDP_AGREE(comm_free, MPI_Comm_free);
  CUDP_AGREE(allgather, MPI_Allgather);
  CUDP_AGREE(iallgather, MPI_Iallgather);
  CUDP_AGREE(iallreduce, MPI_Iallreduce);
  CUDP_AGREE(ibcast, MPI_Ibcast);
  CUDP_AGREE(igatherv, MPI_Igatherv);
  CUDP_AGREE(isend, MPI_Isend);
  CUDP_AGREE(iprobe, MPI_Iprobe);
  CUDP_AGREE(recv, MPI_Recv);
  CUDP_AGREE(test, MPI_Test);
#undef CUDP_AGREE
}

#else
TEST(MpiLibrary, HasTheConstantsOfMpiH) { GTEST_SKIP() << "no mpi.h"; }
#endif

}  // namespace
}  // namespace cudp
