export interface WorkflowRun {
  readonly id: number;
}
