package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// newPodResourcesCommand prints who holds what and what is offered, as the kubelet says it.
func newPodResourcesCommand() *cobra.Command {
	var sock string
	c := &cobra.Command{Use: "pod-resources", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		conn, err := grpc.NewClient("unix://"+sock, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		pr := podresources.NewPodResourcesListerClient(conn)
		l, err := pr.List(ctx, &podresources.ListPodResourcesRequest{})
		if err != nil {
			return err
		}
		for _, p := range l.PodResources {
			for _, c := range p.Containers {
				fmt.Printf("%s/%s/%s devices=%v dynamic=%v\n", p.Namespace, p.Name, c.Name, c.Devices, c.DynamicResources)
			}
		}
		a, err := pr.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
		if err != nil {
			return err
		}
		fmt.Println("allocatable", a.Devices)
		return nil
	}}
	c.Flags().StringVar(&sock, "socket", "/var/lib/kubelet/pod-resources/kubelet.sock", "pod-resources socket")
	return c
}
