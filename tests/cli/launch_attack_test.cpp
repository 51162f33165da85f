// Another user of the host who connects to everything that listens, in a network namespace of the test's own: the run
// ends as it would alone, bit for bit, and the stranger receives nothing but challenges.
#include "tests/all_cases.h"
#include "tests/cli/launch_fixture.h"

namespace ranklab {
namespace {

class LaunchAttack : public Launch {};

TEST_F(LaunchAttack, AStrangerReadsAltersAndKillsNothing) {
  if (const Outcome probe = run_both("unshare -n true"); probe.exit_code != 0)
    GTEST_SKIP() << "no network namespaces here (unshare -n, as root): " << probe.output;
  const int tries = all_cases() ? 200 : 6;
  ASSERT_EQ(ranklab("train --world-size 4 --tp 2 " + kShort + log("alone")).exit_code, 0);
  ASSERT_EQ(curve("alone").size(), 4u) << "three steps, a validation";
  long connections = 0;
  for (int i = 0; i < tries; ++i) {
    const std::string name = "attacked" + std::to_string(i);
    const std::string transport = i % 2 == 0 ? "" : " --transport tcp";
    // Every third run has no token, as under mpirun: then ranks are known by their user.
    const std::string train =
        (i % 3 == 2 ? " --master-port 29555 -- env -u RANKLAB_RUN_TOKEN " RANKLAB_BINARY " train" : " train") +
        std::string(" --tp 2 ");
    // The attacker is there before the run, and makes the namespace's loopback interface work.
    const Outcome run =
        run_both("unshare -n sh -c '" RANKLAB_ATTACKER " >" + folder("report") + " & A=$!; until grep -q ready " +
                 folder("report") + "; do sleep 0.05; done; " + RANKLAB_BINARY + " launch --nproc-per-node 4" + train +
                 kShort + transport + log(name) + "; C=$?; kill $A; wait $A; exit $C'");
    ASSERT_EQ(run.exit_code, 0) << "try " << i << transport << ": " << run.output;
    EXPECT_THAT(run.output, HasSubstr(transport.empty() ? "Gloo over unix sockets" : "Gloo over TCP"));
    EXPECT_EQ(curve("alone"), curve(name)) << "try " << i;
    const std::string report = text("report");
    long made = 0, beyond = -1, visitors = -1;
    const size_t at = report.find("connections");
    ASSERT_NE(at, std::string::npos) << report;
    ASSERT_EQ(std::sscanf(report.c_str() + at, "connections %ld beyond %ld visitors %ld", &made, &beyond, &visitors),
              3);
    EXPECT_EQ(beyond, 0) << "bytes that are no challenge, try " << i;
    EXPECT_EQ(visitors, 0) << "ranks that came to a port the stranger had taken, try " << i;
    connections += made;
  }
  EXPECT_GT(connections, 100 * tries) << "else it attacked nothing";
}

}  // namespace
}  // namespace ranklab
